// Runs command lines of bmcli in this process against a FakeMarket.
#pragma once

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/bmcli.h"
#include "fake_market.h"
#include "temporary_folder.h"

namespace bmgpu::cli {

class FakeInterrupts : public Interrupts {
 public:
  void on_interrupt(std::function<void()> callback) override {
    const std::lock_guard lock(mutex_);
    callback_ = std::move(callback);
  }
  // Ctrl-C. REQUIRES: a command listens for it.
  void press() {
    const std::lock_guard lock(mutex_);
    check(static_cast<bool>(callback_), "test: nobody listens for Ctrl-C");
    callback_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> callback_;
};

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

// One document, on one line, that a JSON parser reads; empty if it is not.
inline std::optional<google::protobuf::Struct> one_document(const std::string& out) {
  google::protobuf::Struct document;
  const bool one_line = out.ends_with('\n') && out.find('\n') == out.size() - 1;
  if (!one_line || !google::protobuf::util::JsonStringToMessage(out, &document).ok()) {
    return std::nullopt;
  }
  return document;
}

class CommandLine {
 public:
  CommandLine() {
    folder_.write("config.yaml", "url: http://127.0.0.1:1\ntoken: bm1_tenant_x\n");
    variables["BMCLI_CONFIG"] = folder_.path("config.yaml");
    variables["NO_COLOR"] = "1";
  }

  Ran run(const std::vector<std::string>& line, const std::string& input = "") {
    // Threads that follow a job hold copies of `connect`, and through it this token; when run()
    // returns, none of them is left to use the market of a test that is over.
    const auto token = std::make_shared<int>();
    const Ran ran = run_once(line, input, token);
    while (token.use_count() > 1) {
      std::this_thread::yield();
    }
    return ran;
  }

  FakeMarket market;
  FakeInterrupts interrupts;
  std::map<std::string, std::string> variables;
  bool terminal = false;
  Result<std::string> shown_ca = Error{ErrorCode::Unavailable, "nobody answers"};
  const TemporaryFolder& folder() const { return folder_; }

 private:
  Ran run_once(const std::vector<std::string>& line, const std::string& input,
               const std::shared_ptr<int>& token) {
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream in(input);
    Environment environment{.out = out, .err = err, .in = in, .interrupts = interrupts};
    environment.in_terminal = terminal;
    environment.out_terminal = terminal;
    environment.err_terminal = terminal;
    environment.in_descriptor = -1;
    environment.variable = [this](const std::string& name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    environment.now = [] { return Instant(1'800'000'000'000); };
    environment.connect = [this, token](wire::Endpoint endpoint) {
      return market.connect(endpoint);
    };
    environment.connect_socket = [this](const wire::Endpoint&, std::string_view,
                                        wire::WebSocketClient::Callbacks callbacks) {
      return market.connect_socket(std::move(callbacks));
    };
    environment.fetch_ca_sha256 = [this](const std::string&) { return shown_ca; };
    environment.retry_wait = std::chrono::milliseconds(1);
    Ran ran;
    ran.code = run_bmcli(environment, line);
    ran.out = out.str();
    ran.err = err.str();
    return ran;
  }

  TemporaryFolder folder_;
};

}  // namespace bmgpu::cli
