// A real bmd in a temporary folder, over TLS, which can be killed and started again at its address.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/market.pb.h"
#include "wire/client.h"

namespace bmgpu::agent {

// A child process that is killed with its owner. What it says goes to `log_file`.
class Child {
 public:
  Child() = default;
  Child(const std::vector<std::string>& argv, const std::string& log_file);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  int wait();  // its exit code, 128 + signal if it was killed
  int end(int number);

 private:
  pid_t pid_ = -1;
};

class MarketProcess {
 public:
  MarketProcess();
  ~MarketProcess();

  void start();
  void kill();  // −9

  // Every call is an operator's; a failure fails the test and gives an empty answer.
  template <typename Response, typename Request>
  Response call(const std::string& method, const Request& request) {
    Response response;
    call_erased("bmgpu.v1.Market/" + method, request, response);
    return response;
  }

  // What `bm-agent join` is given.
  std::string join_token(const std::string& node, std::int64_t ttl_ms = 600'000);
  v1::Order place(const v1::JobSpec& job, std::uint32_t gpus, std::int64_t duration_ms);
  v1::Order order(const std::string& id);
  bool wait_for(const std::string& order, v1::OrderState state);
  // The whole log, one text a line; waits until it is complete.
  std::vector<std::string> log(const std::string& order);
  v1::Node node();  // the only one
  wire::Endpoint endpoint() const;
  const std::string& messages_file() const { return messages_; }

 private:
  void call_erased(const std::string& method, const google::protobuf::Message& request,
                   google::protobuf::Message& response);
  void write_config(const std::string& listen, const std::string& heartbeat) const;

  TempDir dir_;
  const std::string messages_ = dir_.file("bmd.log");
  Child bmd_;
  std::string token_;
  std::unique_ptr<wire::Client> client_;
};

}  // namespace bmgpu::agent
