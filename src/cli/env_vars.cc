#include "cli/env_vars.h"

#include <algorithm>
#include <cctype>

#include "cli/file.h"
#include "cli/text.h"
#include "wire/json.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kFileBytesMax = 1024 * 1024;

bool valid_name(const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, allowed);
}

}  // namespace

Result<void> EnvVars::set(const std::string& name, const std::string& value,
                          const std::string& where) {
  if (!valid_name(name)) {
    return Error{ErrorCode::InvalidArgument,
                 where + ": \"" + printable(name.substr(0, 80)) +
                     "\" is not a variable's name: letters, digits and _, no digit first"};
  }
  if (value.find('\0') != std::string::npos || !wire::is_utf8(value)) {
    return Error{ErrorCode::InvalidArgument,
                 where + ": the value of " + name + " holds a NUL byte or invalid UTF-8"};
  }
  const auto found =
      std::ranges::find(variables_, name, &std::pair<std::string, std::string>::first);
  if (found != variables_.end()) {
    found->second = value;
  } else {
    variables_.emplace_back(name, value);
  }
  return {};
}

Result<void> EnvVars::add_from(const std::string& name, const std::string& where) {
  const std::optional<std::string> value = valid_name(name) ? own_(name) : std::string();
  if (!value) {
    return Error{ErrorCode::InvalidArgument,
                 where + ": " + name + " is not set here; write " + name + "=VALUE"};
  }
  return set(name, *value, where);
}

Result<void> EnvVars::add(const std::string& word, const std::string& where) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    return add_from(word, where);
  }
  return set(word.substr(0, equals), word.substr(equals + 1), where);
}

Result<void> EnvVars::add_file(const std::string& path) {
  Result<std::string> text = read_small_file(path, kFileBytesMax);
  if (!text) {
    return text.error();
  }
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::string where = path + ":" + std::to_string(number);
    if (Result<void> added = add(std::string(line), where); !added) {
      return added;
    }
  }
  return {};
}

}  // namespace bmgpu::cli
