#include "core/market/orders.h"

#include <algorithm>

#include "base/wide.h"
#include "core/book/window.h"
#include "core/market/pricing.h"
#include "core/market/times.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

constexpr std::int64_t kAmountMax = std::int64_t{1} << 40;  // MiB, or thousandths of a CPU
constexpr std::size_t kWordsMax = 128;                      // bytes

Reason out_of_range(std::string detail) {
  return Reason{ReasonCode::OutOfRange, std::move(detail)};
}

bool is_amount(std::int64_t value) { return value >= 0 && value <= kAmountMax; }

}  // namespace

std::variant<Resources, Reason> checked_resources(const Resources& resources) {
  if (resources.gpus < 1 || resources.gpus > Limits::kGpusPerOrderMax) {
    return out_of_range("ask for 1 to " + std::to_string(Limits::kGpusPerOrderMax) + " GPUs");
  }
  if (resources.gpu_words.size() > kWordsMax) {
    return out_of_range("the GPU's name is longer than " + std::to_string(kWordsMax) + " bytes");
  }
  if (!is_amount(resources.gpu_memory_mib_min) || !is_amount(resources.memory_mib) ||
      !is_amount(resources.scratch_mib)) {
    return out_of_range("memory and scratch are 0 to " + std::to_string(kAmountMax) + " MiB");
  }
  if (!is_amount(resources.cpu_millis)) {
    return out_of_range("CPU is 0 to " + std::to_string(kAmountMax) + " thousandths");
  }
  Resources checked = resources;
  checked.gpu_words = normalise_words(resources.gpu_words);
  const bool has_word =
      std::any_of(resources.gpu_words.begin(), resources.gpu_words.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      });
  if (!resources.gpu_words.empty() && !has_word) {
    return Reason{ReasonCode::UnknownGpu, "'" + resources.gpu_words + "' names no GPU"};
  }
  return checked;
}

std::optional<Reason> check_duration(Duration duration) {
  if (duration < Limits::kLeaseMin || duration > Limits::kLeaseMax) {
    return out_of_range("a lease lasts 1 minute to 30 days");
  }
  return std::nullopt;
}

std::optional<Reason> check_price_limit(Price limit) {
  if (limit < Price() || limit > Limits::kPriceMax) {
    return out_of_range("a price limit is 0 (none) to " +
                        std::to_string(micros_per_gpu_hour(Limits::kPriceMax)) +
                        " micro-units per GPU-hour");
  }
  return std::nullopt;
}

std::string per_hour(Price price) {
  const std::int64_t micros = micros_per_gpu_hour(price);
  std::string fraction = std::to_string(micros % 1'000'000);
  fraction.insert(0, 6 - fraction.size(), '0');
  return std::to_string(micros / 1'000'000) + "." + fraction;
}

std::optional<Reason> above_limit(const State& state, const Candidate& candidate, std::int64_t gpus,
                                  Instant now, Duration duration, Price limit) {
  const Instant start = candidate.start;
  const Instant until = priced_until(start, start + duration, state.policy.billed_min);
  if (within_limit(candidate.slot_prices, start, until, gpus, limit)) {
    return std::nullopt;
  }
  const Price average = average_price(candidate.slot_prices, start, until, gpus);
  return Reason{ReasonCode::PriceAboveLimit,
                "the price is " + per_hour(average) + " " + state.policy.currency +
                    " per GPU-hour " + (start == now ? "now" : "from " + utc_text(start) + " on") +
                    ", above the limit of " + per_hour(limit)};
}

LeaseGranted grant(const State& state, const Stamp& stamp, const Order& order,
                   const Candidate& candidate, PolicyVersion policy) {
  const NodeRecord& node = state.nodes.at(candidate.node);
  Lease lease;
  lease.id = LeaseId(order.id.value());
  lease.order = order.id;
  lease.tenant = order.tenant;
  lease.gpu_class = candidate.pool.gpu_class;
  lease.site = candidate.pool.site;
  lease.gpus = order.resources.gpus;
  lease.start = candidate.start;
  lease.end = candidate.start + order.duration;
  lease.slot_prices = candidate.slot_prices;
  lease.policy = policy;
  lease.restart = order.restart;
  lease.price_limit = order.price_limit;
  lease.quoted = candidate.total;
  lease.billed_min = state.policy.billed_min;
  lease.placed = stamp.now;
  lease.started = lease.start;
  lease.preparing_since = lease.start;
  lease.owner_floor = candidate.owner_floor;
  lease.without_job = order.without_job;
  const bool is_booked = candidate.start > stamp.now;
  std::uint64_t lanes = 0;
  if (is_booked) {
    lanes = bookable_lanes(node, lease.gpu_class, Interval{lease.start, lease.end});
    lease.state = LeaseState::Booked;
    lease.cancel_fee_permille = state.policy.cancel_fee_permille;
  } else {
    lanes = lanes_free_now(node, lease.gpu_class, free_now(state, stamp.now, order.duration));
    lease.state = lease.without_job ? LeaseState::Held : LeaseState::Preparing;
    if (lease.without_job) {
      lease.running_since = lease.start;
    } else {
      lease.attempts = first_attempts(stamp, 1);
    }
  }
  lease.allocations.push_back(Allocation{
      lease.start, lease.end, {place(state, node, lease.gpu_class, order.resources, lanes)}});
  return LeaseGranted{std::move(lease)};
}

std::vector<Attempt> first_attempts(const Stamp& stamp, std::size_t ranks) {
  return std::vector<Attempt>(ranks,
                              Attempt{AttemptNumber(1), stamp.incarnation, AttemptState::Assigned});
}

}  // namespace bmgpu::core
