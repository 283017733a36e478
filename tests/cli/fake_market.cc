#include "fake_market.h"

#include <google/protobuf/message.h>

#include <fstream>
#include <iterator>

namespace bmgpu::cli {
namespace {

std::string bare(std::string_view method) {
  constexpr std::string_view kService = "bmgpu.v1.Market/";
  check(method.starts_with(kService), "fake market: not a method of the market");
  return std::string(method.substr(kService.size()));
}

class FakeSocket final : public wire::WebSocketClient {
 public:
  FakeSocket(FakeMarket::Script script, Callbacks callbacks)
      : script_(std::move(script)), callbacks_(std::move(callbacks)) {}

  bool send(std::string message) override {
    for (std::string& answer : script_(message)) {
      callbacks_.on_message(std::move(answer));
    }
    return true;
  }
  void close() override {}
  std::size_t queued_bytes() const override { return 0; }

 private:
  FakeMarket::Script script_;
  Callbacks callbacks_;
};

}  // namespace

class FakeClient final : public wire::Client {
 public:
  explicit FakeClient(FakeMarket& market) : market_(market) {}

  Result<void> call(std::string_view method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, std::string_view key,
                    std::chrono::milliseconds) override {
    const std::string bytes = request.SerializeAsString();
    FakeMarket::AnyUnary handler;
    {
      const std::lock_guard lock(market_.mutex_);
      market_.calls_.push_back({bare(method), std::string(key), bytes});
      if (market_.failure_) {
        return *market_.failure_;
      }
      handler = market_.unary_[bare(method)];
    }
    if (!handler) {
      return Error{ErrorCode::Internal, "fake market: nothing set for " + bare(method)};
    }
    Result<std::string> answer = handler(bytes);
    if (!answer) {
      return answer.error();
    }
    check(response.ParseFromString(*answer), "fake market: wrong type of answer");
    return {};
  }

  Result<void> stream(std::string_view method, const google::protobuf::Message& request,
                      const std::function<bool(std::string_view bytes)>& on_message) override {
    const std::string bytes = request.SerializeAsString();
    FakeMarket::AnyStream handler;
    {
      const std::lock_guard lock(market_.mutex_);
      market_.calls_.push_back({bare(method), "", bytes});
      if (market_.failure_) {
        return *market_.failure_;
      }
      handler = market_.streams_[bare(method)];
    }
    if (!handler) {
      return Error{ErrorCode::Internal, "fake market: nothing set for " + bare(method)};
    }
    return handler(bytes, on_message);
  }

  Result<void> put_file(std::string_view path, const std::string& file,
                        const std::function<void(std::size_t sent)>& on_progress) override {
    std::ifstream content(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(content), std::istreambuf_iterator<char>()};
    on_progress(bytes.size());
    const std::lock_guard lock(market_.mutex_);
    market_.uploads_[std::string(path)] = std::move(bytes);
    return {};
  }

  Result<void> get_file(std::string_view, const std::string&) override {
    return Error{ErrorCode::Internal, "fake market: bmcli never gets files"};
  }

 private:
  FakeMarket& market_;
};

Result<std::unique_ptr<wire::Client>> FakeMarket::connect(wire::Endpoint endpoint) {
  const std::lock_guard lock(mutex_);
  endpoints_.push_back(std::move(endpoint));
  return std::unique_ptr<wire::Client>(std::make_unique<FakeClient>(*this));
}

Result<std::unique_ptr<wire::WebSocketClient>> FakeMarket::connect_socket(
    wire::WebSocketClient::Callbacks callbacks) {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    return *failure_;
  }
  return std::unique_ptr<wire::WebSocketClient>(
      std::make_unique<FakeSocket>(script_, std::move(callbacks)));
}

std::vector<FakeMarket::Call> FakeMarket::calls(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  std::vector<Call> found;
  for (const Call& call : calls_) {
    if (method.empty() || call.method == method) {
      found.push_back(call);
    }
  }
  return found;
}

std::map<std::string, std::string> FakeMarket::uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_;
}

std::vector<wire::Endpoint> FakeMarket::endpoints() const {
  const std::lock_guard lock(mutex_);
  return endpoints_;
}

}  // namespace bmgpu::cli
