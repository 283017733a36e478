// A real bmd in a temporary folder, on free ports, for tests and benchmarks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/client.h"

namespace bmgpu::integration {

// A folder of its own that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Everything but construction may be called again after stop() or kill(): the state stays.
class BmdProcess {
 public:
  // `program`: the bmd to run. `extra`: lines for its configuration. TLS is off unless `extra` says
  // otherwise.
  explicit BmdProcess(std::string program, std::string extra = "");
  ~BmdProcess();  // kill -9, if it still runs
  BmdProcess(const BmdProcess&) = delete;
  BmdProcess& operator=(const BmdProcess&) = delete;

  // Returns once it listens; false if it ended instead or took over 30 s.
  bool start();
  // SIGTERM; its exit code.
  int stop();
  void kill();
  bool runs() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

  // What a run of `bmd ARGUMENT --config …` printed on standard output; its exit code in `code`.
  std::string run(const std::string& argument, int& code) const;
  std::string messages() const;  // standard error so far

  // With the endpoints of the last start().
  wire::Endpoint endpoint(const std::string& bearer) const;
  wire::Endpoint heartbeat_endpoint(const std::string& bearer) const;
  std::string operator_token() const;
  std::unique_ptr<wire::Client> client(const std::string& bearer) const;
  std::unique_ptr<wire::Client> operator_client() const { return client(operator_token()); }
  std::string file(std::string_view name) const { return folder_.path() + "/" + std::string(name); }
  std::string state_dir() const { return file("state"); }

 private:
  pid_t spawn(const std::string& argument, const std::string& out) const;

  const std::string program_;
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  std::string url_;
  std::string heartbeat_;
  std::string ca_sha256_;
};

}  // namespace bmgpu::integration
