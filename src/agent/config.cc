#include "agent/config.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "agent/gpu/cdi.h"
#include "wire/yaml_config.h"

namespace bmgpu::agent {
namespace {

constexpr std::int64_t kCpuMillisMax = 4096 * 1000;
constexpr std::int64_t kMebibytesMax = std::int64_t{1} << 30;  // 1 PiB

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

// A name without '/' is looked for in PATH, or a word such as "auto".
void make_absolute(std::string& path) {
  if (path.find('/') != std::string::npos) {
    path = absolute(path);
  }
}

void read_log(wire::YamlSection section, wire::LogOptions& options) {
  constexpr std::array kLevels = {wire::LogLevel::Debug, wire::LogLevel::Info,
                                  wire::LogLevel::Warning, wire::LogLevel::Error};
  std::size_t level = 1;
  section.choice("level", {"debug", "info", "warning", "error"}, level);
  options.level = kLevels[level];
  std::size_t format = 0;
  section.choice("format", {"text", "json"}, format);
  options.format = format == 0 ? wire::LogFormat::Text : wire::LogFormat::Json;
}

void read_keys(wire::YamlSection root, AgentConfig& config) {
  root.text("state_dir", config.state_dir);
  if (config.state_dir.empty()) {
    root.reject("state_dir", "must be a folder");
  }
  wire::YamlSection nvml = root.section("nvml");
  nvml.text("library", config.nvml.library);
  nvml.text("sim_profile", config.nvml.sim_profile);
  wire::YamlSection runtime = root.section("runtime");
  runtime.text("podman", config.runtime.podman);
  const std::vector<std::string> runtimes = {"auto", "runc", "crun"};
  std::size_t chosen = 0;
  runtime.choice("oci_runtime", runtimes, chosen);
  config.runtime.oci_runtime = runtimes[chosen];
  runtime.text_list("image_stores", config.runtime.image_stores);
  runtime.text("init_path", config.runtime.init_path);
  wire::YamlSection cdi = root.section("cdi");
  cdi.text("dir", config.cdi.dir);
  cdi.text("kind", config.cdi.kind);
  if (!config.cdi.kind.empty()) {
    if (const Result<void> checked = check_cdi_kind(config.cdi.kind); !checked) {
      cdi.reject("kind", checked.error().message);
    }
  }
  wire::YamlSection share = root.section("share");
  share.integer("cpu_millis", config.share.cpu_millis, 0, kCpuMillisMax);
  share.integer("memory_mib", config.share.memory_mib, 0, kMebibytesMax);
  share.integer("scratch_mib", config.share.scratch_mib, 0, kMebibytesMax);
  root.integer("blob_cache_mib", config.blob_cache_mib, 64, kMebibytesMax);
  read_log(root.section("log"), config.log);
}

}  // namespace

Result<AgentConfig> load_config(const std::optional<std::string>& file,
                                const std::optional<std::string>& state_dir) {
  AgentConfig config;
  std::error_code unused;
  if (file || std::filesystem::exists(kDefaultConfigFile, unused)) {
    Result<wire::YamlConfig> yaml = wire::YamlConfig::load(file.value_or(kDefaultConfigFile));
    if (!yaml) {
      return yaml.error();
    }
    read_keys(yaml->root(), config);
    if (const Result<void> checked = yaml->finish(); !checked) {
      return checked.error();
    }
  }
  if (state_dir) {
    config.state_dir = *state_dir;
  }
  config.state_dir = absolute(config.state_dir);
  config.cdi.dir = absolute(config.cdi.dir);
  make_absolute(config.nvml.library);
  if (!config.nvml.sim_profile.empty()) {
    config.nvml.sim_profile = absolute(config.nvml.sim_profile);
  }
  make_absolute(config.runtime.podman);
  make_absolute(config.runtime.init_path);
  for (std::string& store : config.runtime.image_stores) {
    store = absolute(store);
  }
  return config;
}

}  // namespace bmgpu::agent
