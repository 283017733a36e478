#include "sim/replay/job_trace.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "sim/csv.h"
#include "sim/replay/swf_trace.h"

namespace bmgpu::sim {
namespace {

constexpr std::int64_t kDurationMs = JobTraceLimits::kDurationMax.count();

// The columns of a format; an empty name: it has none of that.
struct Columns {
  const char* submitted;
  const char* duration;
  const char* gpus;
  const char* account;
  const char* declared;
  bool sorted;  // rows that go back in time are an error
};

Columns columns_of(JobTraceFormat format) {
  switch (format) {
    case JobTraceFormat::Philly:
      return {"timestamp", "duration", "num_gpus", "cluster", "", false};
    case JobTraceFormat::Gavel:
      return {"arrival_s", "v100_s", "gpus", "vc", "", false};
    case JobTraceFormat::Csv:
    case JobTraceFormat::Swf:
      break;
  }
  return {"submit_s", "duration_s", "gpus", "account", "declared_s", true};
}

class Reader {
 public:
  Reader(CsvReader csv, JobTraceFormat format)
      : csv_(std::move(csv)), format_(format), names_(columns_of(format)) {}

  Result<std::vector<TraceJob>> read() {
    for (const auto& [name, index] :
         {std::pair(names_.submitted, &submitted_), std::pair(names_.duration, &duration_),
          std::pair(names_.gpus, &gpus_), std::pair(names_.account, &account_)}) {
      const Result<std::size_t> column = csv_.column(name);
      if (!column) {
        return column.error();
      }
      *index = *column;
    }
    if (csv_.has_column(names_.declared)) {
      declared_ = *csv_.column(names_.declared);
    }
    std::vector<TraceJob> jobs;
    while (csv_.next()) {
      if (format_ == JobTraceFormat::Gavel && csv_.text(duration_).empty()) {
        continue;
      }
      TraceJob job = row();
      if (names_.sorted && !jobs.empty() && job.submitted < jobs.back().submitted) {
        csv_.fail(submitted_, "earlier than the row before; sort the rows by this column");
      }
      jobs.push_back(std::move(job));
    }
    if (csv_.failed()) {
      return csv_.error();
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const TraceJob& a, const TraceJob& b) {
      return a.submitted < b.submitted;
    });
    return jobs;
  }

 private:
  TraceJob row() {
    TraceJob job;
    if (format_ == JobTraceFormat::Philly) {
      const std::optional<Instant> at = parse_time(csv_.text(submitted_));
      if (!at) {
        csv_.fail(submitted_, "not a time like 2017-10-01 13:30:00");
      }
      job.submitted = at.value_or(Instant());
    } else {
      job.submitted = Instant(csv_.milliseconds(submitted_, 0, JobTraceLimits::kTimeMax.unix_ms()));
    }
    job.duration = Duration(csv_.milliseconds(duration_, 1, kDurationMs));
    job.gpus = csv_.number(gpus_, 1, JobTraceLimits::kGpusMax);
    job.account = csv_.text(account_);
    if (declared_) {
      job.declared = Duration(csv_.milliseconds(*declared_, 1, kDurationMs));
    }
    return job;
  }

  CsvReader csv_;
  JobTraceFormat format_;
  Columns names_;
  std::size_t submitted_ = 0;
  std::size_t duration_ = 0;
  std::size_t gpus_ = 0;
  std::size_t account_ = 0;
  std::optional<std::size_t> declared_;
};

// Takes "<digits><separator>" off the front; absent: something else is there.
std::optional<unsigned> take(std::string_view& text, std::size_t digits, char separator) {
  unsigned value = 0;
  const char* const end = text.data() + std::min(digits, text.size());
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || rest != end || text.size() < digits) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  if (text.empty() ? separator != '\0' : text.front() != separator) {
    return std::nullopt;
  }
  text.remove_prefix(text.empty() ? 0 : 1);
  return value;
}

}  // namespace

std::optional<Instant> parse_time(std::string_view text) {
  const bool has_hours = text.size() > 10;
  const auto year = take(text, 4, '-');
  const auto month = year ? take(text, 2, '-') : std::nullopt;
  const auto day = month ? take(text, 2, has_hours ? ' ' : '\0') : std::nullopt;
  if (!day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  const auto hour = has_hours ? take(text, 2, ':') : std::optional(0U);
  const auto minute = has_hours && hour ? take(text, 2, ':') : hour;
  const auto second = has_hours && minute ? take(text, 2, '\0') : minute;
  if (!second || !date.ok() || *year < 1970 || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return Instant() + hours(24) * days + hours(*hour) + minutes(*minute) + seconds(*second);
}

Result<std::vector<TraceJob>> read_job_trace(const std::string& path, JobTraceFormat format) {
  if (format == JobTraceFormat::Swf) {
    return read_swf_trace(path);
  }
  Result<CsvReader> csv = CsvReader::open(path);
  if (!csv) {
    return csv.error();
  }
  return Reader(std::move(*csv), format).read();
}

}  // namespace bmgpu::sim
