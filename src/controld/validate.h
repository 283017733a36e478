// Checks of what tenants send, before it reaches the market. Pure; each failure is InvalidArgument
// that says what is allowed. docs/reference/limits.md lists the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace bmgpu::v1 {
class ExecStart;
class JobSpec;
class Resources;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

struct JobLimits {
  static constexpr std::size_t kArgumentBytesMax = 128 * 1024;
  static constexpr std::size_t kCommandBytesMax = 1024 * 1024;  // command and environment together
  static constexpr int kArgumentsMax = 4096;
  static constexpr int kEnvVarsMax = 1024;
  static constexpr int kFilesMax = 10'000;
  static constexpr std::size_t kPathBytesMax = 1024;
  static constexpr std::int64_t kFilesBytesMax = std::int64_t{64} << 30;
  static constexpr std::size_t kImageBytesMax = 512;
};

// An image reference or alias: [host[:port]/]path[:tag][@sha256:<64 hex>] out of [A-Za-z0-9._/:@-],
// each path part starting with a letter or digit. Never a leading '-', never a shell character.
Result<void> check_image(std::string_view reference);

// [a-z0-9-]{1,63}: names of jobs, tokens, nodes and sites. `what` goes into the message.
Result<void> check_name(std::string_view what, std::string_view name);

// [A-Za-z_][A-Za-z0-9_]*, at most 255 bytes.
Result<void> check_env_name(std::string_view name);

// Relative, '/'-separated, UTF-8, without empty, "." or ".." parts.
Result<void> check_work_path(std::string_view path);

// A symbolic link at `path` stays inside the folder.
Result<void> check_link(std::string_view path, std::string_view target);

Result<void> check_job(const v1::JobSpec& job);
Result<void> check_resources(const v1::Resources& resources);
Result<void> check_exec(const v1::ExecStart& start);

}  // namespace bmgpu::controld
