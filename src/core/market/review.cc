// Which waiting order is served next. Orders that want the same resources stand in one queue,
// shortest GPU-time first, so a queue that fits nowhere costs one look; one that fits costs a look
// for each order whose limit is below the price.
#include <map>
#include <tuple>

#include "core/market/orders.h"

namespace bmgpu::core {
namespace {

// Orders of one queue with the same duration, pool and standing in demand pay the same.
using PriceClass = std::tuple<Duration, PoolKey, bool>;

PriceClass price_class(const State& state, const Order& order) {
  const PoolKey home{order.gpu_class, order.site};
  const Price limit = order.price_limit;
  const bool is_demand = limit.count() == 0 || limit >= state.pools.at(home).last_price;
  return {order.duration, home, is_demand};
}

// The most free GPUs that one node has of one class.
std::int64_t most_free(const State& state) {
  std::int64_t most = 0;
  for (const auto& [key, pool] : state.pools) {
    for (const auto& [floor, lists] : pool.free_by_floor) {
      for (std::int64_t free = std::ssize(lists) - 1; free > most; --free) {
        most = lists[static_cast<std::size_t>(free)].empty() ? most : free;
      }
    }
  }
  return most;
}

}  // namespace

std::optional<std::pair<const Order*, Candidate>> next_to_serve(const State& state, Instant now) {
  std::optional<std::pair<const Order*, Candidate>> best;
  std::optional<QueueKey> best_key;
  const std::int64_t gpus_max = most_free(state);
  for (const auto& [resources, queue] : state.queue) {
    if (resources.gpus > gpus_max) {
      break;  // queues are ordered by GPUs first
    }
    std::map<PriceClass, std::optional<Candidate>> places;
    for (const QueueKey& key : queue) {
      if (best_key && *best_key < key) {
        break;
      }
      const Order& order = state.waiting.at(key.id);
      const auto [it, is_new] = places.try_emplace(price_class(state, order));
      if (is_new) {
        auto found = cheapest_place(state, resources, now, order.duration, &order);
        if (auto* candidate = std::get_if<Candidate>(&found)) {
          it->second = std::move(*candidate);
        }
      }
      if (!it->second) {
        break;  // it fits nowhere, whatever the duration
      }
      if (!above_limit(state, *it->second, resources.gpus, now, order.duration,
                       order.price_limit)) {
        best.emplace(&order, *it->second);
        best_key = key;
        break;
      }
    }
  }
  return best;
}

std::optional<Reason> why_waiting(const State& state, const Order& order, Instant now) {
  const auto found = cheapest_place(state, order.resources, now, order.duration, &order);
  if (const auto* reason = std::get_if<Reason>(&found)) {
    return *reason;
  }
  return above_limit(state, std::get<Candidate>(found), order.resources.gpus, now, order.duration,
                     order.price_limit);
}

}  // namespace bmgpu::core
