// The libpod REST API, as far as a node needs it. One connection a call, a deadline on each.
//
// Errors carry the engine's own words. Thread-safe: a client holds nothing but the socket's path.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/runtime/http.h"
#include "base/result.h"

namespace bmgpu::agent {

struct BindMount {
  std::string source;
  std::string target;
  bool read_only = false;
};

// What a container is created from. Everything that is not here is fixed: default seccomp profile,
// no capabilities, no new privileges, read-only root, restart policy `no`, k8s-file log.
struct ContainerSpec {
  std::string name;
  std::string image;    // or
  std::string root_fs;  // a folder
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::vector<std::string> unset_env;  // of the image's
  std::map<std::string, std::string> labels;
  std::vector<BindMount> mounts;     // nosuid, nodev
  std::vector<std::string> devices;  // CDI names
  std::string user;                  // empty = the image's
  std::string working_dir;           // empty = the image's
  std::string hostname;
  std::string log_path;           // empty = no log
  std::string network_namespace;  // path; empty = a new one with nothing but loopback
  std::string cgroup_parent;
  std::int64_t cpu_millis = 0;  // 0 = no limit, here and below
  std::int64_t memory_bytes = 0;
  bool limit_swap = false;  // memory_bytes is then the limit of memory and swap together
  std::int64_t pids = 0;
  std::int64_t shm_bytes = 0;
  std::int64_t nofile = 0;
  std::int64_t nproc = 0;
};

struct ContainerState {
  std::string id;
  std::string status;  // created, initialized, running, paused, stopping, stopped, exited, …
  bool running = false;
  bool oom_killed = false;
  int pid = 0;
  int conmon_pid = 0;
  int exit_code = 0;
  std::int64_t finished_unix_ms = 0;  // 0 or less = not noted (yet)
  std::string error;
  std::string cgroup_path;  // "/bmgpu-…/libpod-<id>"
  // It ran, ended, and the engine has noted how. Between its end and that note it is neither
  // running nor is its exit code to be believed.
  bool ended() const { return !running && finished_unix_ms > 0; }
};

struct ContainerSummary {
  std::string id;
  std::string name;
  std::string state;
  std::map<std::string, std::string> labels;
};

struct ImageConfig {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;
};

class Podman {
 public:
  using Duration = std::chrono::milliseconds;
  using Labels = std::vector<std::pair<std::string, std::string>>;

  explicit Podman(std::string socket, Duration deadline = Duration(10'000));

  const std::string& socket() const { return socket_; }

  Result<std::string> version() const;                          // "4.3.1"; the service answers
  Result<std::string> create(const ContainerSpec& spec) const;  // its id
  Result<void> start(const std::string& container) const;
  Result<ContainerState> inspect(const std::string& container) const;  // NotFound
  // Removes a dead container. Refused while it runs; one that does not exist is fine.
  Result<void> remove(const std::string& container) const;
  // All that have every one of these labels, in any state.
  Result<std::vector<ContainerSummary>> list(const Labels& labels) const;

  Result<bool> image_exists(const std::string& reference) const;
  Result<ImageConfig> inspect_image(const std::string& reference) const;
  Result<std::vector<std::string>> images() const;  // sorted references
  // Fetches an image from its registry. `on_progress` gets the engine's words, many times. Ends
  // soon after `cancel` became true.
  Result<void> pull(const std::string& reference, Duration deadline,
                    const std::atomic<bool>& cancel,
                    const std::function<void(const std::string&)>& on_progress) const;

  // A further command in a running container. The connection that start_exec() gives carries its
  // raw output and input from then on.
  Result<std::string> create_exec(const std::string& container,
                                  const std::vector<std::string>& command, bool terminal,
                                  const std::string& working_dir) const;
  Result<HttpConnection> start_exec(const std::string& id, bool terminal, int rows,
                                    int columns) const;
  Result<void> resize_exec(const std::string& id, int rows, int columns) const;
  // Waits for the command's end to be noted, up to the deadline.
  Result<int> exec_exit_code(const std::string& id) const;

  static std::string archive_target(const std::string& container, const std::string& path);
  // The error that an answer of 400 and above stands for, in the engine's words.
  static Error failure(const HttpResponse& response);

 private:
  std::string socket_;
  Duration deadline_;
};

}  // namespace bmgpu::agent
