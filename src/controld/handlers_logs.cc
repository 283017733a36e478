#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "wire/encoding.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint32_t kTailMax = 10'000;

// On the loop, after the commit: the log exists once the order has a lease, so a follower of a
// waiting order waits with it.
void attach(Market& market, const core::State& state, OrderId order, FollowRequest follow) {
  const bool waits = state.waiting.contains(order);
  if (waits && !follow.follow) {
    follow.stream->finish({});
    return;
  }
  auto shared = std::make_shared<FollowRequest>(std::move(follow));
  market.orders.when_leased(order, state, [&market, shared](std::optional<LogKey> key) {
    if (!key) {
      shared->stream->finish({});
      return;
    }
    shared->key = *key;
    market.parts.logs.follow(std::move(*shared));
  });
}

void stream_logs(Market& market, api::Request request, std::shared_ptr<api::Stream> stream) {
  v1::StreamLogsRequest asked;
  Result<void> fine = check_access(request.caller, Access::People);
  if (fine) {
    fine = wire::decode(request.encoding, request.body, asked);
  }
  if (fine && asked.tail() > kTailMax) {
    fine = Error{ErrorCode::InvalidArgument, "tail is at most 10,000 lines"};
  }
  if (!fine) {
    stream->finish(fine);
    return;
  }
  FollowRequest follow;
  follow.from_sequence = std::max<std::uint64_t>(asked.from_sequence(), 1);
  follow.tail = asked.tail();
  follow.follow = asked.follow();
  follow.encoding = request.encoding;
  follow.stream = stream;
  const bool posted = market.parts.inbox.post(
      [&market, follow, id = asked.id(), caller = request.caller](Turn& turn) {
        const core::State& state = turn.state();
        turn.after_commit([&market, &state, follow, id, caller](const Result<void>& durable) {
          const Result<OrderId> order = market.orders.resolve(state, caller, id);
          if (!durable || !order) {
            follow.stream->finish(durable ? Result<void>(order.error()) : durable);
            return;
          }
          attach(market, state, *order, follow);
        });
      });
  if (!posted) {
    stream->finish(Error{ErrorCode::ResourceExhausted, "the market is busy; try again soon"});
  }
}

}  // namespace

void add_log_methods(api::Server& server, Market& market) {
  server.stream("bmgpu.v1.Market/StreamLogs",
                [&market](api::Request request, std::shared_ptr<api::Stream> stream) {
                  stream_logs(market, std::move(request), std::move(stream));
                });
}

}  // namespace bmgpu::controld
