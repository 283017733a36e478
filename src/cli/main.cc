// bmcli: wires the real world to run_bmcli().
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "cli/bmcli.h"

namespace {

using namespace std::chrono_literals;
using bmgpu::cli::Environment;

constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells have it

// Waits for SIGINT on a thread of its own, so that callbacks may do what a signal handler may not.
class SignalInterrupts : public bmgpu::cli::Interrupts {
 public:
  // REQUIRES: called before any other thread starts, because threads inherit the mask.
  SignalInterrupts() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    std::thread([this, wanted] { run(wanted); }).detach();
  }

  void on_interrupt(std::function<void()> callback) override {
    const std::lock_guard lock(mutex_);
    callback_ = std::move(callback);
  }

 private:
  void run(const sigset_t& wanted) {
    int signal = 0;
    while (sigwait(&wanted, &signal) == 0) {
      const std::lock_guard lock(mutex_);
      if (!callback_) {
        _exit(kInterruptedExitCode);
      }
      std::exchange(callback_, {})();  // a second Ctrl-C ends the process
    }
  }

  std::mutex mutex_;
  std::function<void()> callback_;
};

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bmgpu::Instant now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return bmgpu::Instant(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace

int main(int count, char** words) {
  // Never ended: its thread and those that follow a job may outlive main().
  auto* const interrupts = new SignalInterrupts();
  Environment environment{
      .out = std::cout, .err = std::cerr, .in = std::cin, .interrupts = *interrupts};
  environment.in_terminal = ::isatty(STDIN_FILENO) == 1;
  environment.out_terminal = ::isatty(STDOUT_FILENO) == 1;
  environment.err_terminal = ::isatty(STDERR_FILENO) == 1;
  environment.variable = variable;
  environment.now = now;
  environment.connect = [](bmgpu::wire::Endpoint endpoint) {
    return bmgpu::wire::Client::create(std::move(endpoint));
  };
  environment.connect_socket = [](const bmgpu::wire::Endpoint& endpoint, std::string_view method,
                                  bmgpu::wire::WebSocketClient::Callbacks callbacks) {
    return bmgpu::wire::WebSocketClient::connect(endpoint, method, std::move(callbacks), 15s);
  };
  environment.fetch_ca_sha256 = [](const std::string& url) {
    return bmgpu::wire::shown_ca_sha256(url, 15s);
  };
  const int code = bmgpu::cli::run_bmcli(environment, {words + 1, words + count});
  std::cout.flush();
  std::cerr.flush();
  _exit(code);  // without destructors: threads that follow a job may still use what they hold
}
