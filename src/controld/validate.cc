#include "controld/validate.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bmgpu/v1/market.pb.h"
#include "core/types.h"
#include "wire/json.h"

namespace bmgpu::controld {
namespace {

Error invalid(std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; }

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_lower(c) || is_upper(c) || is_digit(c); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

// Bytes for a message: only printable ASCII, cut to 80.
std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 80)) {
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out + (text.size() > 80 ? "…'" : "'");
}

bool all_of(std::string_view text, bool (*holds)(char)) {
  return std::all_of(text.begin(), text.end(), holds);
}

// What may stand in an argument or a value: UTF-8 without NUL.
Result<void> check_text(std::string_view what, std::string_view text, std::size_t max) {
  if (text.size() > max) {
    return invalid(std::string(what) + " has " + std::to_string(text.size()) +
                   " bytes; the limit is " + std::to_string(max));
  }
  if (!wire::is_utf8(text) || text.find('\0') != std::string_view::npos) {
    return invalid(std::string(what) + " must be UTF-8 without NUL bytes");
  }
  return {};
}

template <typename Strings>
Result<std::size_t> check_arguments(const Strings& command) {
  if (command.size() > JobLimits::kArgumentsMax) {
    return invalid("the command has " + std::to_string(command.size()) +
                   " arguments; the limit is " + std::to_string(JobLimits::kArgumentsMax));
  }
  std::size_t bytes = 0;
  for (int i = 0; i < command.size(); ++i) {
    const std::string what = "argument " + std::to_string(i + 1) + " of the command";
    const Result<void> checked = check_text(what, command.Get(i), JobLimits::kArgumentBytesMax);
    if (!checked) {
      return checked.error();
    }
    bytes += command.Get(i).size() + 1;
  }
  if (command.size() > 0 && command.Get(0).empty()) {
    return invalid("the command's first argument, the program, is empty");
  }
  return bytes;
}

Result<std::size_t> check_env(const v1::JobSpec& job) {
  if (job.env_size() > JobLimits::kEnvVarsMax) {
    return invalid("the job has more than " + std::to_string(JobLimits::kEnvVarsMax) +
                   " environment variables");
  }
  std::set<std::string_view> names;
  std::size_t bytes = 0;
  for (const v1::EnvVar& var : job.env()) {
    const Result<void> named = check_env_name(var.name());
    if (!named) {
      return named.error();
    }
    if (!names.insert(var.name()).second) {
      return invalid("the environment variable " + var.name() + " is given twice");
    }
    const Result<void> value =
        check_text("the value of " + var.name(), var.value(), JobLimits::kArgumentBytesMax);
    if (!value) {
      return value.error();
    }
    bytes += var.name().size() + var.value().size() + 2;
  }
  return bytes;
}

Result<void> check_file(const v1::WorkFile& file) {
  const Result<void> path = check_work_path(file.path());
  if (!path) {
    return path;
  }
  if (!file.link_target().empty()) {
    if (!file.sha256().empty()) {
      return invalid(shown(file.path()) + " is a file or a symbolic link, not both");
    }
    return check_link(file.path(), file.link_target());
  }
  if (file.sha256().size() != 32) {
    return invalid(shown(file.path()) + " needs the 32 bytes of its SHA-256");
  }
  if (file.size() < 0 || (file.mode() & ~07777U) != 0) {
    return invalid(shown(file.path()) + " has a negative size or a mode beyond permission bits");
  }
  return {};
}

Result<void> check_workdir(const v1::JobSpec& job) {
  if (job.workdir_size() > JobLimits::kFilesMax) {
    return invalid("the working directory has " + std::to_string(job.workdir_size()) +
                   " files; the limit is " + std::to_string(JobLimits::kFilesMax) +
                   "; leave some out with .bmignore");
  }
  std::set<std::string_view> paths;
  std::int64_t bytes = 0;
  for (const v1::WorkFile& file : job.workdir()) {
    const Result<void> checked = check_file(file);
    if (!checked) {
      return checked;
    }
    if (!paths.insert(file.path()).second) {
      return invalid(shown(file.path()) + " is in the working directory twice");
    }
    if (file.size() > JobLimits::kFilesBytesMax - bytes) {
      return invalid("the working directory has more than 64 GiB");
    }
    bytes += file.size();
  }
  for (const std::string_view path : paths) {
    for (std::size_t at = path.find('/'); at != std::string_view::npos;
         at = path.find('/', at + 1)) {
      if (paths.contains(path.substr(0, at))) {
        return invalid(shown(path.substr(0, at)) + " is a file and a folder");
      }
    }
  }
  return {};
}

bool image_path_ok(std::string_view path) {
  for (const std::string_view part : split(path, '/')) {
    const auto in_part = [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; };
    if (part.empty() || !is_alnum(part.front()) || !all_of(part, in_part)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<void> check_image(std::string_view reference) {
  const Error bad = invalid(
      shown(reference) +
      " is not an image reference: write [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST], parts of "
      "letters, digits, '.', '_' and '-' that start with a letter or digit");
  if (reference.empty() || reference.size() > JobLimits::kImageBytesMax) {
    return bad;
  }
  std::string_view rest = reference;
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos) {
    const std::string_view digest = rest.substr(at + 1);
    if (digest.substr(0, 7) != "sha256:" || digest.size() != 71 ||
        !all_of(digest.substr(7), is_hex)) {
      return bad;
    }
    rest = rest.substr(0, at);
  }
  const std::size_t slash = rest.find('/');
  const std::size_t tag = rest.rfind(':');
  const std::size_t last_slash = rest.rfind('/');
  if (tag != std::string_view::npos && (last_slash == std::string_view::npos || tag > last_slash)) {
    if (rest.size() - tag > 129 || !image_path_ok(rest.substr(tag + 1)) ||
        rest.find('/', tag) != std::string_view::npos) {
      return bad;
    }
    rest = rest.substr(0, tag);
  }
  if (slash != std::string_view::npos) {
    const std::size_t port = rest.substr(0, slash).find(':');
    if (port != std::string_view::npos) {
      const std::string_view digits = rest.substr(port + 1, slash - port - 1);
      if (digits.empty() || digits.size() > 5 || !all_of(digits, is_digit) ||
          !image_path_ok(rest.substr(0, port))) {
        return bad;
      }
      rest = rest.substr(slash + 1);
    }
  }
  return image_path_ok(rest) ? Result<void>() : Result<void>(bad);
}

Result<void> check_name(std::string_view what, std::string_view name) {
  const auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '-'; };
  if (name.empty() || name.size() > 63 || name.front() == '-' || !all_of(name, allowed)) {
    return invalid(std::string(what) + " " + shown(name) +
                   " must be 1 to 63 of a-z, 0-9 and '-', and not start with '-'");
  }
  return {};
}

Result<void> check_env_name(std::string_view name) {
  const auto allowed = [](char c) { return is_alnum(c) || c == '_'; };
  if (name.empty() || name.size() > 255 || is_digit(name.front()) || !all_of(name, allowed)) {
    return invalid("the environment variable name " + shown(name) +
                   " must be letters, digits and '_', and not start with a digit");
  }
  return {};
}

Result<void> check_work_path(std::string_view path) {
  if (path.empty() || path.size() > JobLimits::kPathBytesMax || !wire::is_utf8(path)) {
    return invalid("the path " + shown(path) + " must be 1 to 1024 bytes of UTF-8");
  }
  for (const std::string_view part : split(path, '/')) {
    const bool control = std::any_of(part.begin(), part.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (part.empty() || part == "." || part == ".." || part.size() > 255 || control) {
      return invalid("the path " + shown(path) +
                     " must be relative, without '..', '.', empty parts or control characters");
    }
  }
  return {};
}

Result<void> check_link(std::string_view path, std::string_view target) {
  const Error bad = invalid("the symbolic link " + shown(path) + " → " + shown(target) +
                            " must be relative and stay inside the folder");
  if (target.empty() || target.size() > JobLimits::kPathBytesMax || target.front() == '/' ||
      !wire::is_utf8(target) || target.find('\0') != std::string_view::npos) {
    return bad;
  }
  std::ptrdiff_t depth = std::count(path.begin(), path.end(), '/');
  for (const std::string_view part : split(target, '/')) {
    if (part == "..") {
      --depth;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
    if (depth < 0) {
      return bad;
    }
  }
  return {};
}

Result<void> check_job(const v1::JobSpec& job) {
  if (job.image().empty()) {
    return invalid("the job has no image: name one, such as --image pytorch:2.0");
  }
  Result<void> checked = check_image(job.image());
  if (checked && !job.name().empty()) {
    checked = check_name("the job's name", job.name());
  }
  if (!checked) {
    return checked;
  }
  const Result<std::size_t> command = check_arguments(job.command());
  if (!command) {
    return command.error();
  }
  const Result<std::size_t> env = check_env(job);
  if (!env) {
    return env.error();
  }
  if (*command + *env > JobLimits::kCommandBytesMax) {
    return invalid("command and environment together have " + std::to_string(*command + *env) +
                   " bytes; the limit is 1 MiB; put the data into a file of --workdir");
  }
  if (!v1::NetworkMode_IsValid(job.network())) {
    return invalid("the network mode is unknown: use nat or none");
  }
  return check_workdir(job);
}

Result<void> check_resources(const v1::Resources& resources) {
  const auto most = static_cast<std::uint32_t>(core::Limits::kGpusPerOrderMax);
  if (resources.gpus() < 1 || resources.gpus() > most) {
    return invalid("gpus must be 1 to " + std::to_string(most) + ", not " +
                   std::to_string(resources.gpus()));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (const std::int64_t amount : {resources.gpu_memory_mib_min(), resources.cpu_millis(),
                                    resources.memory_mib(), resources.scratch_mib()}) {
    if (amount < 0 || amount > kMost) {
      return invalid("an amount of memory, CPU or scratch is negative or beyond any machine");
    }
  }
  const auto allowed = [](char c) {
    return is_alnum(c) || c == ' ' || c == '-' || c == '.' || c == '_' || c == '/';
  };
  if (resources.gpu().size() > 128 || !all_of(resources.gpu(), allowed)) {
    return invalid("the GPU " + shown(resources.gpu()) +
                   " must be words of a model name, such as \"A100 80GB\"");
  }
  return {};
}

Result<void> check_exec(const v1::ExecStart& start) {
  const bool archive = start.archive() != v1::ARCHIVE_DIRECTION_UNSPECIFIED;
  if (archive) {
    return start.archive_path().empty()
               ? Result<void>(invalid("archive_path is empty: name a path inside the job"))
               : check_text("archive_path", start.archive_path(), 4096);
  }
  if (start.command().empty()) {
    return invalid("the command is empty");
  }
  const Result<std::size_t> command = check_arguments(start.command());
  if (!command) {
    return command.error();
  }
  return *command > JobLimits::kCommandBytesMax
             ? Result<void>(invalid("the command has more than 1 MiB"))
             : Result<void>();
}

}  // namespace bmgpu::controld
