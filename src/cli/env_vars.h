// The environment of a job, gathered from words, files and bmcli's own environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace bmgpu::cli {

class EnvVars {
 public:
  using Variable = std::function<std::optional<std::string>(const std::string& name)>;
  explicit EnvVars(Variable own) : own_(std::move(own)) {}

  // The later value of a name outweighs the earlier; `where` begins the message of a mistake.
  Result<void> set(const std::string& name, const std::string& value, const std::string& where);
  // From our own environment; not set there is a mistake.
  Result<void> add_from(const std::string& name, const std::string& where);
  // "NAME=VALUE" or "NAME".
  Result<void> add(const std::string& word, const std::string& where);
  // One add() a line; blank lines and lines that begin with '#' are skipped, and nothing is quoted.
  Result<void> add_file(const std::string& path);

  // In the order of first appearance.
  std::vector<std::pair<std::string, std::string>> take() { return std::move(variables_); }

 private:
  Variable own_;
  std::vector<std::pair<std::string, std::string>> variables_;
};

}  // namespace bmgpu::cli
