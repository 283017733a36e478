#include "controld/rpc.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "controld/metrics.h"
#include "wire/encoding.h"
#include "wire/hash.h"

namespace bmgpu::controld {
namespace {

constexpr std::size_t kKeyBytesMax = 128;

Result<void> check_key(std::string_view key) {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (key.empty()) {
    return Error{ErrorCode::InvalidArgument,
                 "this call changes something and needs the header Idempotency-Key: 1 to 128 "
                 "printable characters, a new one for each wish, the same one for a retry"};
  }
  if (key.size() > kKeyBytesMax || !std::all_of(key.begin(), key.end(), printable)) {
    return Error{ErrorCode::InvalidArgument,
                 "the Idempotency-Key must be 1 to 128 printable ASCII characters without blanks"};
  }
  return {};
}

store::RequestHash hash_of(std::string_view method, std::string_view body) {
  std::string bytes(method);
  bytes.append(1, '\0').append(body);
  return wire::sha256(bytes);
}

}  // namespace

struct Rpc::Call {
  std::shared_ptr<const Erased> method;
  api::Identity caller;
  wire::Encoding encoding = wire::Encoding::Proto;
  std::string key;
  store::RequestHash hash{};
  std::unique_ptr<Message> request;
  std::shared_ptr<api::Replier> replier;
  BootTime start{};
};

Result<void> check_access(const api::Identity& caller, Access access) {
  const api::Role role = caller.role;
  const bool owner = role == api::Role::Owner;
  const bool op = role == api::Role::Operator;
  bool allowed = false;
  switch (access) {
    case Access::AnyToken:
      allowed = true;
      break;
    case Access::People:
      allowed = role == api::Role::Tenant || owner || op;
      break;
    case Access::OwnersOperators:
      allowed = owner || op;
      break;
    case Access::Operators:
      allowed = op;
      break;
    case Access::JoiningNodes:
      allowed = role == api::Role::NodeJoin;
      break;
  }
  if (!allowed) {
    return Error{ErrorCode::PermissionDenied,
                 "the role of this token may not do this; ask the market's operator"};
  }
  return {};
}

void Rpc::add_erased(std::shared_ptr<const Erased> method) {
  server_.unary(method->name,
                [this, method](api::Request request, std::shared_ptr<api::Replier> replier) {
                  receive(method, std::move(request), std::move(replier));
                });
}

void Rpc::receive(const std::shared_ptr<const Erased>& method, api::Request request,
                  std::shared_ptr<api::Replier> replier) {
  auto call = std::make_shared<Call>();
  call->start = boot_now();
  const bool mutation = method->effect == Effect::Mutation;
  Result<void> fine = check_access(request.caller, method->access);
  if (fine && mutation) {
    fine = check_key(request.idempotency_key);
  }
  if (fine) {
    call->request = method->make_request();
    fine = wire::decode(request.encoding, request.body, *call->request);
  }
  if (fine && method->prepare) {
    fine = method->prepare(request.caller, *call->request);
  }
  if (fine) {
    if (mutation) {
      call->hash = hash_of(method->name, request.body);
      call->key = std::move(request.idempotency_key);
    }
    call->method = method;
    call->caller = request.caller;
    call->encoding = request.encoding;
    call->replier = replier;
    if (inbox_.post([this, call](Turn& turn) { run(turn, call); })) {
      return;
    }
    fine = Error{ErrorCode::ResourceExhausted,
                 "the market has limits.queued_requests_max requests waiting; try again soon"};
  }
  metrics_.request(method->name, fine, boot_now() - call->start);
  replier->reply(fine.error());
}

void Rpc::run(Turn& turn, const std::shared_ptr<Call>& call) {
  const Erased& method = *call->method;
  const bool mutation = method.effect == Effect::Mutation;
  std::unique_ptr<Message> response = method.make_response();
  if (mutation && !turn.writable()) {
    answer(turn, call,
           Error{ErrorCode::Unavailable,
                 "the market's journal cannot be written now (is its disk full?), so nothing can "
                 "be changed; try again with the same idempotency key"});
    return;
  }
  Result<bool> stored = false;
  if (mutation) {
    stored = find_stored(turn, *call, *response);
  }
  if (!stored) {
    answer(turn, call, stored.error());
    return;
  }
  if (!*stored) {
    const Result<void> done = method.run(turn, call->caller, *call->request, *response);
    if (!done) {
      answer(turn, call, done.error());
      return;
    }
    if (mutation) {
      turn.remember({call->caller.account, call->key, call->hash,
                     wire::encode(wire::Encoding::Proto, *response), turn.now()});
    }
  }
  if (method.reveal) {
    method.reveal(*response);
  }
  answer(turn, call, wire::encode(call->encoding, *response));
}

Result<bool> Rpc::find_stored(Turn& turn, const Call& call, Message& response) {
  std::optional<store::StoredAnswer> kept;
  const store::StoredAnswer* found = turn.remembered(call.caller.account, call.key);
  if (found == nullptr) {
    Result<std::optional<store::StoredAnswer>> read =
        journal_.find_answer(call.caller.account, call.key);
    if (!read) {
      return read.error();
    }
    kept = std::move(*read);
    if (!kept) {
      return false;
    }
    found = &*kept;
  }
  if (found->request != call.hash) {
    return Error{ErrorCode::AlreadyExists,
                 "this Idempotency-Key was used for another request; take a new key for each wish"};
  }
  const Result<void> decoded = wire::decode_answer(found->answer, response);
  return decoded ? Result<bool>(true) : Result<bool>(decoded.error());
}

void Rpc::answer(Turn& turn, const std::shared_ptr<Call>& call, Result<std::string> body) {
  turn.after_commit([this, call, body = std::move(body)](const Result<void>& durable) mutable {
    const Result<void> outcome = !durable ? durable : body ? Result<void>() : body.error();
    metrics_.request(call->method->name, outcome, boot_now() - call->start);
    call->replier->reply(durable ? std::move(body) : Result<std::string>(durable.error()));
  });
}

}  // namespace bmgpu::controld
