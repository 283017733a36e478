#include <sys/stat.h>

#include <algorithm>

#include "bmgpu/v1/records.pb.h"
#include "controld/blob_ledger.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/requests.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "controld/views.h"
#include "wire/encoding.h"
#include "wire/hash.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint32_t kListDefault = 100;
constexpr std::uint32_t kListMax = 1000;

// Every file of the working directory has been uploaded, by the account itself.
Result<void> check_blobs(const MarketParts& parts, AccountId account, const v1::JobSpec& job) {
  for (const v1::WorkFile& file : job.workdir()) {
    if (file.sha256().empty()) {
      continue;
    }
    struct stat info {};
    const std::string name = wire::hex(file.sha256());
    const std::string path = parts.dir.file("blobs/" + name);
    if (!parts.blobs.touch(account, name) || stat(path.c_str(), &info) != 0) {
      return Error{
          ErrorCode::InvalidArgument,
          "the file " + file.path() + " has not been uploaded: PUT /blobs/" + name + " first"};
    }
    if (info.st_size != file.size()) {
      return Error{ErrorCode::InvalidArgument,
                   "the file " + file.path() + " has another size than its content"};
    }
  }
  return {};
}

std::string resolve_image(const Config& config, const std::string& asked) {
  const auto alias = std::find_if(config.images.begin(), config.images.end(),
                                  [&](const auto& entry) { return entry.first == asked; });
  return alias == config.images.end() ? asked : alias->second;
}

Result<v1::Order> place(Turn& turn, Market& market, const api::Identity& caller,
                        const v1::PlaceOrderRequest& request) {
  const Result<Duration> duration = duration_of("the duration", request.duration_ms());
  const Result<Price> limit = price_limit(request.max_price_micros_per_gpu_hour());
  if (!duration || !limit) {
    return duration ? limit.error() : duration.error();
  }
  core::PlaceOrder command;
  command.tenant = caller.account;
  command.resources = resources_of(request.resources());
  command.duration = *duration;
  command.price_limit = *limit;
  command.refuse_if_unavailable = request.refuse_if_unavailable();
  command.restart = request.restart() == v1::RESTART_POLICY_NEVER
                        ? core::RestartPolicy::Never
                        : core::RestartPolicy::HostFailure;
  if (!request.quote().empty()) {
    const Result<QuoteId> quote = wire::parse_id<QuoteId>(request.quote());
    if (!quote) {
      return quote.error();
    }
    command.quote = *quote;
  }
  const Result<void> room = market.orders.check_room(caller.account, request.job());
  if (!room) {
    return room.error();
  }
  const core::Answer answer = turn.execute(command);
  if (const auto* refused = std::get_if<core::Refused>(&answer)) {
    return refusal(refused->reason);
  }
  const auto& placed = std::get<core::OrderAnswer>(answer);
  v1::JobRecord job;
  *job.mutable_job() = request.job();
  job.set_image_asked(request.job().image());
  job.mutable_job()->set_image(resolve_image(market.parts.config, request.job().image()));
  market.orders.keep_job(turn, placed.order, caller.account, std::move(job));
  const OrderContext context{market.parts.directory, market.orders.job(placed.order), ""};
  if (placed.lease) {
    return lease_view(turn.state(), turn.state().leases.at(*placed.lease), context, turn.now());
  }
  return waiting_view(turn.state(), turn.state().waiting.at(placed.order),
                      placed.waiting ? placed.waiting->detail : "", context, turn.now());
}

// Stopping something that is over is not an error: it says so and changes nothing.
Result<v1::Order> stop(Turn& turn, Market& market, const api::Identity& caller,
                       const v1::StopOrderRequest& request) {
  const Result<OrderId> order = market.orders.resolve(turn.state(), caller, request.id());
  if (!order) {
    return order.error();
  }
  const bool op = caller.role == api::Role::Operator;
  const core::Answer answer =
      turn.execute(core::StopOrder{op ? AccountId() : caller.account, *order});
  const auto* refused = std::get_if<core::Refused>(&answer);
  if (refused != nullptr && refused->reason.code != core::ReasonCode::AlreadyEnded &&
      refused->reason.code != core::ReasonCode::NoSuchObject) {
    return refusal(refused->reason);
  }
  return market.orders.view(turn.state(), *order, turn.now());
}

Result<v1::Order> extend(Turn& turn, Market& market, const api::Identity& caller,
                         const v1::ExtendLeaseRequest& request) {
  const Result<Duration> by = duration_of("the extension", request.by_ms());
  const Result<Price> limit = price_limit(request.max_price_micros_per_gpu_hour());
  const Result<OrderId> order = market.orders.resolve(turn.state(), caller, request.id());
  if (!by || !limit || !order) {
    return !by ? by.error() : !limit ? limit.error() : order.error();
  }
  const auto lease = turn.state().leases.find(LeaseId(order->value()));
  if (lease == turn.state().leases.end()) {
    return Error{ErrorCode::Refused,
                 wire::to_text(*order) + " has no live lease: only a lease can be extended"};
  }
  const core::Answer answer =
      turn.execute(core::ExtendLease{lease->second.tenant, *order, *by, *limit});
  if (const auto* refused = std::get_if<core::Refused>(&answer)) {
    return refusal(refused->reason);
  }
  return market.orders.view(turn.state(), *order, turn.now());
}

// A stream is opened on the edge's thread, looks its order up on the loop's.
void watch(Market& market, api::Request request, std::shared_ptr<api::Stream> stream) {
  auto asked = std::make_shared<v1::GetOrderRequest>();
  Result<void> fine = check_access(request.caller, Access::People);
  if (fine) {
    fine = wire::decode(request.encoding, request.body, *asked);
  }
  if (!fine) {
    stream->finish(fine);
    return;
  }
  const bool posted = market.parts.inbox.post(
      [&market, asked, caller = request.caller, encoding = request.encoding, stream](Turn& turn) {
        const core::State& state = turn.state();
        turn.after_commit([&market, &state, asked, caller, encoding, stream,
                           now = turn.now()](const Result<void>& durable) {
          const Result<OrderId> order = market.orders.resolve(state, caller, asked->id());
          if (!durable || !order) {
            stream->finish(durable ? Result<void>(order.error()) : durable);
            return;
          }
          market.orders.watch(*order, encoding, stream, state, now);
        });
      });
  if (!posted) {
    stream->finish(Error{ErrorCode::ResourceExhausted, "the market is busy; try again soon"});
  }
}

void add_mutations(Rpc& rpc, Market& market) {
  Method<v1::PlaceOrderRequest, v1::Order> place_order;
  place_order.name = "bmgpu.v1.Market/PlaceOrder";
  place_order.effect = Effect::Mutation;
  place_order.prepare = [&market](const api::Identity& caller,
                                  v1::PlaceOrderRequest& request) -> Result<void> {
    Result<void> checked = check_resources(request.resources());
    checked = checked ? check_job(request.job()) : checked;
    return checked ? check_blobs(market.parts, caller.account, request.job()) : checked;
  };
  place_order.run = [&market](Turn& turn, const api::Identity& caller,
                              const v1::PlaceOrderRequest& request) {
    return place(turn, market, caller, request);
  };
  rpc.add(std::move(place_order));

  Method<v1::StopOrderRequest, v1::Order> stop_order;
  stop_order.name = "bmgpu.v1.Market/StopOrder";
  stop_order.effect = Effect::Mutation;
  stop_order.run = [&market](Turn& turn, const api::Identity& caller,
                             const v1::StopOrderRequest& request) {
    return stop(turn, market, caller, request);
  };
  rpc.add(std::move(stop_order));

  Method<v1::ExtendLeaseRequest, v1::Order> extend_lease;
  extend_lease.name = "bmgpu.v1.Market/ExtendLease";
  extend_lease.effect = Effect::Mutation;
  extend_lease.run = [&market](Turn& turn, const api::Identity& caller,
                               const v1::ExtendLeaseRequest& request) {
    return extend(turn, market, caller, request);
  };
  rpc.add(std::move(extend_lease));
}

}  // namespace

void add_order_methods(Rpc& rpc, api::Server& server, Market& market) {
  add_mutations(rpc, market);

  Method<v1::GetOrderRequest, v1::Order> get;
  get.name = "bmgpu.v1.Market/GetOrder";
  get.run = [&market](Turn& turn, const api::Identity& caller,
                      const v1::GetOrderRequest& request) -> Result<v1::Order> {
    const Result<OrderId> order = market.orders.resolve(turn.state(), caller, request.id());
    return order ? market.orders.view(turn.state(), *order, turn.now())
                 : Result<v1::Order>(order.error());
  };
  rpc.add(std::move(get));

  Method<v1::ListOrdersRequest, v1::ListOrdersResponse> list;
  list.name = "bmgpu.v1.Market/ListOrders";
  list.run = [&market](Turn& turn, const api::Identity& caller,
                       const v1::ListOrdersRequest& request) -> Result<v1::ListOrdersResponse> {
    const std::uint32_t limit = request.limit() == 0 ? kListDefault : request.limit();
    Result<std::vector<v1::Order>> orders = market.orders.list(
        turn.state(), caller, request.all(), std::min(limit, kListMax), turn.now());
    if (!orders) {
      return orders.error();
    }
    v1::ListOrdersResponse response;
    for (v1::Order& order : *orders) {
      *response.add_orders() = std::move(order);
    }
    return response;
  };
  rpc.add(std::move(list));

  server.stream("bmgpu.v1.Market/WatchOrder",
                [&market](api::Request request, std::shared_ptr<api::Stream> stream) {
                  watch(market, std::move(request), std::move(stream));
                });
}

}  // namespace bmgpu::controld
