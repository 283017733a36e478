// bm-agent's configuration (docs/reference/bm-agent-config.md). Every key has a default, so a
// machine needs no file at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/log.h"

namespace bmgpu::agent {

struct AgentConfig {
  std::string state_dir = "/var/lib/bm-agent";
  struct Nvml {
    std::string library = "auto";
    std::string sim_profile;
  } nvml;
  struct Runtime {
    std::string podman = "podman";
    std::string oci_runtime = "auto";
    std::vector<std::string> image_stores;
    std::string init_path;  // empty = beside this program
  } runtime;
  struct Cdi {
    std::string dir = "/var/run/cdi";
    std::string kind;  // empty = made of market and node
  } cdi;
  // What of the machine jobs may use together; 0 = found out (docs say how).
  struct Share {
    std::int64_t cpu_millis = 0;
    std::int64_t memory_mib = 0;
    std::int64_t scratch_mib = 0;
  } share;
  std::int64_t blob_cache_mib = 20 * 1024;
  wire::LogOptions log;
};

inline constexpr const char* kDefaultConfigFile = "/etc/bmgpu/bm-agent.yaml";

// `file` absent: kDefaultConfigFile if it exists, else the defaults. `state_dir` set: instead of
// the file's. Paths are made absolute. An unknown key or a value out of range: InvalidArgument with
// the line.
Result<AgentConfig> load_config(const std::optional<std::string>& file,
                                const std::optional<std::string>& state_dir);

}  // namespace bmgpu::agent
