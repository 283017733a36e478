// bmd: the market. Flags, configuration, signals; everything else is Daemon.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "controld/daemon.h"

namespace bmgpu::controld {
namespace {

// As in docs/reference/bmd.md.
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int fail(const Error& error) {
  std::cerr << "bmd: " << error.message << "\n";
  return error.code == ErrorCode::InvalidArgument ? kExitUsage : kExitFailed;
}

// Blocked in all threads, so that only the wait below gets them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is a full disk: see Loop
  return signals;
}

// The soft limit is often 1024, fewer than the connections that limits.md promises.
void raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

int serve(const Config& config) {
  raise_file_limit();
  const sigset_t signals = block_signals();
  wire::Log log({config.log_level, config.log_format, "bmd"});
  Result<std::unique_ptr<Daemon>> daemon = Daemon::start(config, BMGPU_VERSION, log);
  if (!daemon) {
    return fail(daemon.error());
  }
  int signal = 0;
  sigwait(&signals, &signal);
  log.info("stopping; a second signal stops at once", {{"signal", signal}});
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  const Result<void> stopped = (*daemon)->stop();
  return stopped ? 0 : fail(stopped.error());
}

int run(int argc, char** argv) {
  CLI::App app{"The market of BM-GPU: core, ledger, API and agents' sessions in one process."};
  std::string file = "/etc/bmgpu/bmd.yaml";
  bool print = false;
  bool check = false;
  app.add_option("--config", file, "Configuration file")->capture_default_str();
  app.add_flag("--print-config", print, "Print every key with its effective value, and end");
  app.add_flag("--verify", check,
               "Replay the journal, check the invariants, print sequence and digest, and end");
  app.set_version_flag("--version", "bmd " BMGPU_VERSION);
  CLI11_PARSE(app, argc, argv);
  const Result<Config> config = load_config(file);
  if (!config) {
    return fail(config.error());
  }
  if (print) {
    std::cout << print_config(*config);
    return 0;
  }
  if (check) {
    const Result<std::string> verified = verify(config->state_dir);
    if (!verified) {
      return fail(verified.error());
    }
    std::cout << *verified;
    return 0;
  }
  return serve(*config);
}

}  // namespace
}  // namespace bmgpu::controld

int main(int argc, char** argv) { return bmgpu::controld::run(argc, argv); }
