// Unary calls: who may make them, decoding, checks, idempotency, answering after the commit.
//
// A call is decoded and checked on the edge's thread, run on the market loop's, and answered when
// what it did, or saw, is durable. A mutation needs an Idempotency-Key: its answer is stored with
// the request's hash in the same commit; the same key with the same body gets that answer again,
// with another body AlreadyExists. Only answers of calls that succeeded are stored: a refused one
// changed nothing and may be tried again with its key.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/server.h"
#include "base/result.h"
#include "controld/inbox.h"
#include "controld/turn.h"
#include "store/journal.h"

namespace google::protobuf {
class Message;
}

namespace bmgpu::controld {

class Metrics;

enum class Access {
  AnyToken,
  People,  // tenants, owners, operators
  OwnersOperators,
  Operators,
  JoiningNodes,
};
enum class Effect { Read, Mutation };

Result<void> check_access(const api::Identity& caller, Access access);

template <typename Request, typename Response>
struct Method {
  std::string name;  // "bmgpu.v1.Market/PlaceOrder"
  Access access = Access::People;
  Effect effect = Effect::Read;
  // Edge thread: everything that can be checked without the market's state. May be empty.
  std::function<Result<void>(const api::Identity&, Request&)> prepare;
  // Loop thread. An error must leave the turn without events and documents.
  std::function<Result<Response>(Turn&, const api::Identity&, const Request&)> run;
  // Adds what is never stored (secrets), to fresh and repeated answers alike. May be empty.
  std::function<void(Response&)> reveal;
};

class Rpc {
 public:
  // All outlive this object; this object outlives the server's edge thread and the loop.
  Rpc(api::Server& server, Inbox& inbox, store::Journal& journal, Metrics& metrics)
      : server_(server), inbox_(inbox), journal_(journal), metrics_(metrics) {}

  // REQUIRES: before the server starts.
  template <typename Request, typename Response>
  void add(Method<Request, Response> method);

 private:
  using Message = google::protobuf::Message;
  struct Erased {
    std::string name;
    Access access;
    Effect effect;
    std::function<std::unique_ptr<Message>()> make_request;
    std::function<std::unique_ptr<Message>()> make_response;
    std::function<Result<void>(const api::Identity&, Message&)> prepare;
    std::function<Result<void>(Turn&, const api::Identity&, const Message&, Message&)> run;
    std::function<void(Message&)> reveal;
  };
  struct Call;

  void add_erased(std::shared_ptr<const Erased> method);
  void receive(const std::shared_ptr<const Erased>& method, api::Request request,
               std::shared_ptr<api::Replier> replier);
  void run(Turn& turn, const std::shared_ptr<Call>& call);
  Result<bool> find_stored(Turn& turn, const Call& call, Message& response);
  void answer(Turn& turn, const std::shared_ptr<Call>& call, Result<std::string> body);

  api::Server& server_;
  Inbox& inbox_;
  store::Journal& journal_;
  Metrics& metrics_;
};

template <typename Request, typename Response>
void Rpc::add(Method<Request, Response> method) {
  auto erased = std::make_shared<Erased>();
  erased->name = method.name;
  erased->access = method.access;
  erased->effect = method.effect;
  erased->make_request = [] { return std::make_unique<Request>(); };
  erased->make_response = [] { return std::make_unique<Response>(); };
  if (method.prepare) {
    erased->prepare = [prepare = method.prepare](const api::Identity& caller, Message& request) {
      return prepare(caller, static_cast<Request&>(request));
    };
  }
  erased->run = [run = method.run](Turn& turn, const api::Identity& caller, const Message& request,
                                   Message& response) -> Result<void> {
    Result<Response> done = run(turn, caller, static_cast<const Request&>(request));
    if (!done) {
      return done.error();
    }
    static_cast<Response&>(response) = std::move(*done);
    return {};
  };
  if (method.reveal) {
    erased->reveal = [reveal = method.reveal](Message& response) {
      reveal(static_cast<Response&>(response));
    };
  }
  add_erased(std::move(erased));
}

}  // namespace bmgpu::controld
