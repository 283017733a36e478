// A market in memory for the tests of commands: answers calls, streams and sockets as told, and
// remembers what was asked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/check.h"
#include "wire/client.h"

namespace bmgpu::cli {

class FakeMarket {
 public:
  struct Call {
    std::string method;  // bare name
    std::string key;
    std::string request;  // bytes
  };
  using OnMessage = std::function<bool(std::string_view bytes)>;
  using AnyUnary = std::function<Result<std::string>(const std::string& request)>;
  using AnyStream = std::function<Result<void>(const std::string& request, const OnMessage&)>;

  // Typed handlers. A later one for the same method replaces the earlier.
  template <typename Request, typename Response>
  void on(const std::string& method,
          std::function<Result<void>(const Request&, Response&)> answer) {
    unary_[method] = [answer](const std::string& bytes) -> Result<std::string> {
      Request request;
      check(request.ParseFromString(bytes), "fake market: the request cannot be read");
      Response response;
      Result<void> done = answer(request, response);
      return done ? Result<std::string>(response.SerializeAsString()) : done.error();
    };
  }
  template <typename Request>
  void on_stream(const std::string& method,
                 std::function<Result<void>(const Request&, const OnMessage&)> answer) {
    streams_[method] = [answer](const std::string& bytes, const OnMessage& on_message) {
      Request request;
      check(request.ParseFromString(bytes), "fake market: the request cannot be read");
      return answer(request, on_message);
    };
  }
  // Whatever is asked, this is the answer; also to sockets.
  void fail_everything(Error error) { failure_ = std::move(error); }

  // A socket's script: gets each message of the client and returns what is sent back.
  using Script = std::function<std::vector<std::string>(const std::string& message)>;
  void on_socket(Script script) { script_ = std::move(script); }

  Result<std::unique_ptr<wire::Client>> connect(wire::Endpoint endpoint);
  Result<std::unique_ptr<wire::WebSocketClient>> connect_socket(
      wire::WebSocketClient::Callbacks callbacks);

  std::vector<Call> calls(const std::string& method = "") const;
  // Uploaded contents by path.
  std::map<std::string, std::string> uploads() const;
  std::vector<wire::Endpoint> endpoints() const;

 private:
  friend class FakeClient;
  mutable std::mutex mutex_;
  std::map<std::string, AnyUnary> unary_;
  std::map<std::string, AnyStream> streams_;
  std::optional<Error> failure_;
  Script script_;
  std::vector<Call> calls_;
  std::map<std::string, std::string> uploads_;
  std::vector<wire::Endpoint> endpoints_;
};

}  // namespace bmgpu::cli
