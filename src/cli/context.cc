#include "cli/context.h"

#include <algorithm>
#include <ostream>
#include <thread>

#include "cli/text.h"
#include "wire/hash.h"

namespace bmgpu::cli {
namespace {

constexpr int kMutationAttempts = 5;
constexpr std::size_t kKeyBytes = 16;

}  // namespace

std::string method_path(std::string_view method) {
  return "bmgpu.v1.Market/" + std::string(method);
}

Context::Context(Environment& environment, const CommandSpec& root, Output output,
                 std::optional<std::string> config_option)
    : environment_(environment),
      root_(root),
      output_(output),
      config_path_(cli::config_path(config_option, environment.variable)) {}

Colours Context::out_colours() const {
  const std::optional<std::string> refused = environment_.variable("NO_COLOR");
  return environment_.out_terminal && (!refused || refused->empty()) ? Colours::On : Colours::Off;
}

Colours Context::err_colours() const {
  const std::optional<std::string> refused = environment_.variable("NO_COLOR");
  return environment_.err_terminal && (!refused || refused->empty()) ? Colours::On : Colours::Off;
}

bool Context::can_ask() const {
  return environment_.in_terminal && environment_.err_terminal && !json();
}

void Context::note(std::string_view text) {
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    environment_.err << printable(text.substr(0, end)) << "\n";
    if (end == text.size()) {
      break;
    }
    text.remove_prefix(end + 1);
  }
  environment_.err.flush();
}

Result<MarketConfig> Context::config() {
  if (!config_) {
    config_ = load_config(config_path_, environment_.variable);
  }
  return *config_;
}

Result<wire::Endpoint> Context::endpoint() {
  Result<MarketConfig> read = config();
  if (!read) {
    return read.error();
  }
  return wire::Endpoint{read->url, read->ca_sha256, read->token};
}

Result<wire::Client*> Context::client() {
  if (!client_) {
    Result<wire::Endpoint> where = endpoint();
    if (!where) {
      return where.error();
    }
    Result<std::unique_ptr<wire::Client>> made = environment_.connect(*where);
    if (!made) {
      return made.error();
    }
    client_ = std::move(*made);
  }
  return client_.get();
}

Result<void> Context::call(std::string_view method, const google::protobuf::Message& request,
                           google::protobuf::Message& response) {
  Result<wire::Client*> market = client();
  return market ? (*market)->call(method_path(method), request, response) : market.error();
}

Result<void> Context::mutate(std::string_view method, const google::protobuf::Message& request,
                             google::protobuf::Message& response) {
  Result<wire::Client*> market = client();
  if (!market) {
    return market.error();
  }
  const std::string key = wire::hex(wire::random_bytes(kKeyBytes));
  std::chrono::milliseconds wait = environment_.retry_wait;
  for (int attempt = 1;; ++attempt) {
    Result<void> outcome = (*market)->call(method_path(method), request, response, key);
    const bool lost = !outcome && (outcome.error().code == ErrorCode::Unavailable ||
                                   outcome.error().code == ErrorCode::DeadlineExceeded);
    if (!lost || attempt == kMutationAttempts) {
      return outcome;
    }
    std::this_thread::sleep_for(wait);
    wait = std::min(wait * 2, std::chrono::milliseconds(2000));
  }
}

}  // namespace bmgpu::cli
