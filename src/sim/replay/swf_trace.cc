#include "sim/replay/swf_trace.h"

#include <array>
#include <charconv>
#include <fstream>

#include "sim/csv.h"

namespace bmgpu::sim {
namespace {

// Fields by their place in a line, as the format counts them.
constexpr std::size_t kSubmit = 2;
constexpr std::size_t kRunTime = 4;
constexpr std::size_t kProcessors = 5;
constexpr std::size_t kRequestedProcessors = 8;
constexpr std::size_t kRequestedTime = 9;
constexpr std::size_t kUser = 12;
constexpr std::size_t kFields = 18;
constexpr std::array<const char*, kFields + 1> kNames{"",
                                                      "job number",
                                                      "submit time",
                                                      "wait time",
                                                      "run time",
                                                      "processors",
                                                      "CPU time",
                                                      "memory",
                                                      "requested processors",
                                                      "requested time",
                                                      "requested memory",
                                                      "status",
                                                      "user",
                                                      "group",
                                                      "executable",
                                                      "queue",
                                                      "partition",
                                                      "preceding job",
                                                      "think time"};

Error bad(const std::string& path, std::size_t line, const std::string& why) {
  return Error{ErrorCode::InvalidArgument, path + ":" + std::to_string(line) + ": " + why};
}

// Numbers may have a fraction, which is left out; what is not a number is a field's name.
Result<std::array<std::int64_t, kFields + 1>> numbers_of(const std::string& path, std::size_t line,
                                                         std::string_view text) {
  std::array<std::int64_t, kFields + 1> numbers{};
  std::size_t field = 0;
  for (;;) {
    const std::size_t from = text.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) {
      break;
    }
    text.remove_prefix(from);
    const std::string_view word = text.substr(0, text.find_first_of(" \t\r"));
    text.remove_prefix(word.size());
    if (++field > kFields) {
      return bad(path, line, "more than 18 fields");
    }
    const char* const end = word.data() + word.size();
    auto [rest, code] = std::from_chars(word.data(), end, numbers[field]);
    if (code == std::errc() && rest != end && *rest == '.') {
      rest +=
          std::string_view(rest, end).find_first_not_of("0123456789", 1) == std::string_view::npos
              ? end - rest
              : 0;
    }
    if (code != std::errc() || rest != end) {
      return bad(path, line,
                 "column " + std::to_string(field) + " (" + kNames[field] + "): not a number");
    }
  }
  if (field != kFields) {
    return bad(path, line, std::to_string(field) + " fields, but there are 18 in this format");
  }
  return numbers;
}

}  // namespace

Result<std::vector<TraceJob>> read_swf_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Error{ErrorCode::InvalidArgument, path + ": cannot be opened; is the path right?"};
  }
  std::vector<TraceJob> jobs;
  std::string text(CsvLimits::kLineBytesMax + 1, '\0');
  for (std::size_t line = 1; file.getline(text.data(), std::ssize(text)) || file.gcount() > 0;
       ++line) {
    const std::string_view row = text.c_str();
    if (file.fail() && !file.eof()) {
      return bad(path, line, "longer than " + std::to_string(CsvLimits::kLineBytesMax) + " bytes");
    }
    if (line > CsvLimits::kRowsMax) {
      return bad(path, line, "more than " + std::to_string(CsvLimits::kRowsMax) + " lines");
    }
    if (row.find_first_not_of(" \t\r") == std::string_view::npos || row.front() == ';') {
      continue;
    }
    const auto numbers = numbers_of(path, line, row);
    if (!numbers) {
      return numbers.error();
    }
    const auto field_error = [&](std::size_t field, const std::string& why) {
      return bad(path, line,
                 "column " + std::to_string(field) + " (" + kNames[field] + "): " + why);
    };
    const auto& field = *numbers;
    const std::int64_t gpus =
        field[kProcessors] > 0 ? field[kProcessors] : field[kRequestedProcessors];
    if (field[kSubmit] < 0 || field[kSubmit] > JobTraceLimits::kTimeMax.unix_ms() / 1000) {
      return field_error(kSubmit, "not a time in seconds, 0 to the year 2100");
    }
    if (field[kRunTime] < -1 || field[kRunTime] > JobTraceLimits::kDurationMax.count() / 1000) {
      return field_error(kRunTime, "not -1 to a year in seconds");
    }
    if (gpus > JobTraceLimits::kGpusMax) {
      return field_error(kProcessors, "more than " + std::to_string(JobTraceLimits::kGpusMax));
    }
    if (field[kRunTime] < 1 || gpus < 1) {
      continue;  // it never ran
    }
    TraceJob job{Instant() + seconds(field[kSubmit]), seconds(field[kRunTime]), gpus,
                 std::to_string(field[kUser]), std::nullopt};
    if (field[kRequestedTime] > JobTraceLimits::kDurationMax.count() / 1000) {
      return field_error(kRequestedTime, "more than a year");
    }
    if (field[kRequestedTime] > 0) {
      job.declared = seconds(field[kRequestedTime]);
    }
    if (!jobs.empty() && job.submitted < jobs.back().submitted) {
      return field_error(kSubmit, "earlier than the line before; sort the lines by this field");
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace bmgpu::sim
