#include "wire/client.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "wire/connect.h"
#include "wire/encoding.h"
#include "wire/file_transfer.h"
#include "wire/http_exchange.h"

namespace bmgpu::wire {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kAnswerBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kMessageBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kKeyBytesMax = 128;
constexpr std::chrono::seconds kSilenceMax{45};

Result<void> check_key(std::string_view key) {
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
  if (!printable || key.size() > kKeyBytesMax) {
    return Error{ErrorCode::InvalidArgument,
                 "an idempotency key has 1 to 128 printable ASCII characters"};
  }
  return {};
}

class ConnectClient final : public Client {
 public:
  ConnectClient(WebAddress address, const Endpoint& endpoint)
      : exchange_(std::move(address), endpoint) {}

  Result<void> call(std::string_view method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, std::string_view idempotency_key,
                    std::chrono::milliseconds timeout) override {
    const Result<void> key = check_key(idempotency_key);
    if (!key.ok()) {
      return key;
    }
    const LinkTime deadline = steady_clock::now() + timeout;
    const Result<std::string> body =
        roundtrip(method, encode(Encoding::Proto, request), idempotency_key, deadline);
    exchange_.finish();
    return body.ok() ? decode_answer(*body, response) : body.error();
  }

  Result<void> stream(std::string_view method, const google::protobuf::Message& request,
                      const std::function<bool(std::string_view)>& on_message) override {
    std::string body;
    append_envelope(body, 0, encode(Encoding::Proto, request));
    const std::string head =
        exchange_.head("POST", "/" + std::string(method),
                       "Content-Type: application/connect+proto\r\nConnect-Protocol-Version: "
                       "1\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n");
    Result<void> outcome = exchange_.send(head + body, steady_clock::now() + kSilenceMax);
    if (outcome.ok()) {
      outcome = receive(on_message);
    }
    exchange_.finish();
    return outcome;
  }

  Result<void> put_file(std::string_view path, const std::string& file,
                        const std::function<void(std::size_t)>& on_progress) override {
    return wire::put_file(exchange_, path, file, on_progress);
  }
  Result<void> get_file(std::string_view path, const std::string& file) override {
    return wire::get_file(exchange_, path, file);
  }

 private:
  Result<std::string> roundtrip(std::string_view method, const std::string& body,
                                std::string_view key, LinkTime deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    std::string lines = "Content-Type: application/proto\r\nConnect-Protocol-Version: 1\r\n";
    lines += "Connect-Timeout-Ms: " + std::to_string(std::max<std::int64_t>(left.count(), 1));
    lines += "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    if (!key.empty()) {
      lines += "Idempotency-Key: " + std::string(key) + "\r\n";
    }
    const std::string head = exchange_.head("POST", "/" + std::string(method), lines);
    const Result<void> sent = exchange_.send(head + body, deadline);
    if (!sent.ok()) {
      return sent.error();
    }
    if (exchange_.status() != 200) {
      return exchange_.read_error(deadline);
    }
    return exchange_.read_all(kAnswerBytesMax, deadline);
  }

  Result<void> receive(const std::function<bool(std::string_view)>& on_message) {
    const LinkTime deadline = steady_clock::now() + kSilenceMax;
    if (exchange_.status() != 200) {
      return exchange_.read_error(deadline);
    }
    if (stream_encoding(exchange_.header("Content-Type")) != Encoding::Proto) {
      return Error{ErrorCode::DataLoss, "the server did not answer with a stream"};
    }
    EnvelopeReader reader(kMessageBytesMax);
    for (;;) {
      const Result<std::string> piece = exchange_.read_piece(steady_clock::now() + kSilenceMax);
      if (!piece.ok()) {
        return Error{ErrorCode::Unavailable, "the stream broke: " + piece.error().message};
      }
      if (piece->empty()) {
        return Error{ErrorCode::Unavailable, "the stream broke off without an outcome"};
      }
      reader.add(*piece);
      for (;;) {
        Result<std::optional<EnvelopeReader::Envelope>> next = reader.next();
        if (!next.ok()) {
          return next.error();
        }
        if (!next->has_value()) {
          break;
        }
        const EnvelopeReader::Envelope& envelope = **next;
        if ((envelope.flags & kFlagEndStream) != 0) {
          return end(envelope.message);
        }
        if (envelope.flags != 0) {
          return Error{ErrorCode::DataLoss, "the server sent a compressed message unasked"};
        }
        if (!envelope.message.empty() && !on_message(envelope.message)) {
          return {};
        }
      }
    }
  }

  // Reads the last chunk too, so that the connection can be kept.
  Result<void> end(std::string_view message) {
    static_cast<void>(exchange_.read_piece(steady_clock::now() + kSilenceMax));
    return parse_end_stream(message);
  }

  HttpExchange exchange_;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::create(Endpoint endpoint) {
  Result<WebAddress> address = check_endpoint(endpoint);
  if (!address.ok()) {
    return address.error();
  }
  return std::unique_ptr<Client>(std::make_unique<ConnectClient>(std::move(*address), endpoint));
}

Result<std::string> shown_ca_sha256(const std::string& url, std::chrono::milliseconds timeout) {
  const Result<WebAddress> address = parse_url(url);
  if (!address.ok()) {
    return address.error();
  }
  if (!address->tls) {
    return Error{ErrorCode::InvalidArgument, "'" + url + "' is not https: it has no CA"};
  }
  Link link(*address, {});
  const Result<void> connected = link.connect(steady_clock::now() + timeout);
  if (!connected.ok()) {
    return connected.error();
  }
  return link.shown_ca();
}

}  // namespace bmgpu::wire
