// The digest of a state is that of its snapshot: what a snapshot does not hold is not state.
#include "base/digest.h"

#include <concepts>

#include "core/core.h"

namespace bmgpu::core {
namespace {

// Members of one struct, so that each overload sees the others.
struct Fields {
  static void add(Digest& to, std::int64_t value) { to.add(value); }
  static void add(Digest& to, std::uint64_t value) { to.add(value); }
  static void add(Digest& to, std::int32_t value) { to.add(std::int64_t{value}); }
  static void add(Digest& to, std::uint32_t value) { to.add(std::uint64_t{value}); }
  static void add(Digest& to, bool value) { to.add(std::uint64_t{value ? 1U : 0U}); }
  static void add(Digest& to, const std::string& text) { to.add(text); }
  static void add(Digest& to, Instant at) { to.add(at.unix_ms()); }

  template <typename Enum>
  requires std::is_enum_v<Enum>
  static void add(Digest& to, Enum value) { to.add(static_cast<std::uint64_t>(value)); }
  template <typename Tag>
  static void add(Digest& to, Id<Tag> id) {
    to.add(id.value());
  }
  template <typename Tag>
  static void add(Digest& to, Quantity<Tag> quantity) {
    to.add(quantity.count());
  }
  template <typename T>
  static void add(Digest& to, const std::optional<T>& value) {
    add(to, value.has_value());
    if (value) {
      add(to, *value);
    }
  }

  template <typename T>
  static void add(Digest& to, const std::vector<T>& values) {
    add(to, std::uint64_t{values.size()});
    for (const T& value : values) {
      add(to, value);
    }
  }

  // Each field in the order of its declaration.
  template <typename... Fields>
  static void add_all(Digest& to, const Fields&... fields) {
    (add(to, fields), ...);
  }

  static void add(Digest& to, const BasePrice& v) { add_all(to, v.words, v.micros_per_gpu_hour); }
  static void add(Digest& to, const Item& v) { add_all(to, v.gpu, v.thousandths, v.memory_mib); }
  static void add(Digest& to, const RankPlacement& v) {
    add_all(to, v.node, v.items, v.cpu_millis, v.memory_mib, v.scratch_mib);
  }
  static void add(Digest& to, const Allocation& v) { add_all(to, v.from, v.until, v.ranks); }
  static void add(Digest& to, const Attempt& v) { add_all(to, v.number, v.incarnation, v.state); }
  static void add(Digest& to, const PriceFactor& v) { add_all(to, v.name, v.value, v.after); }
  static void add(Digest& to, const RegisteredGpu& v) { add_all(to, v.id, v.gpu_class, v.uuid); }
  static void add(Digest& to, const PoolPrice& v) { add_all(to, v.gpu_class, v.site, v.last); }
  static void add(Digest& to, const NodeCapacity& v) {
    add_all(to, v.cpu_millis, v.memory_mib, v.scratch_mib);
  }
  static void add(Digest& to, const GpuClassSpec& v) { add_all(to, v.model, v.memory_mib, v.form); }
  static void add(Digest& to, const Resources& v) {
    add_all(to, v.gpus, v.gpu_words, v.gpu_memory_mib_min, v.cpu_millis, v.memory_mib,
            v.scratch_mib);
  }
  static void add(Digest& to, const MarketPolicy& v) {
    add_all(to, v.version, v.currency, v.base_prices, v.base_default_micros_per_gpu_hour,
            v.demand_k_permille, v.duration_decay_permille, v.floor_permille,
            v.load_threshold_permille, v.load_slope_permille, v.surge_cap_permille,
            v.quote_lifetime, v.billed_min, v.preparation_max, v.waiting_max, v.load_horizon,
            v.price_tick, v.delisted_supply, v.turnaround, v.cancel_fee_permille,
            v.drivers_accepted);
  }
  static void add(Digest& to, const Lease& v) {
    add_all(to, v.id, v.order, v.tenant, v.gpu_class, v.site, v.gpus, v.start, v.end, v.slot_prices,
            v.allocations, v.attempts, v.policy, v.restart, v.state, v.running_since, v.ending,
            v.ending_since, v.ending_detail, v.exit_code, v.price_limit, v.quoted, v.billed_min,
            v.placed, v.started, v.preparing_since, v.owner_floor, v.cancel_fee_permille,
            v.without_job, v.delayed);
  }
  static void add(Digest& to, const Order& v) {
    add_all(to, v.id, v.tenant, v.resources, v.duration, v.price_limit, v.restart, v.placed,
            v.gpu_class, v.site, v.without_job);
  }
  static void add(Digest& to, const Interval& v) { add_all(to, v.from, v.until); }
  static void add(Digest& to, const TimeWish& v) {
    add_all(to, v.start, v.earliest, v.deadline, v.allowed);
  }
  static void add(Digest& to, const ClosedPool& v) {
    add_all(to, v.gpu_class, v.site, v.price, v.demand, v.supply);
  }
  static void add(Digest& to, const Quote& v) {
    add_all(to, v.id, v.tenant, v.resources, v.gpu_class, v.site, v.owner_floor, v.duration,
            v.start, v.expires, v.slot_prices, v.total, v.factors, v.policy, v.wish, v.issued);
  }

  static void add(Digest& to, const PolicySet& v) { add(to, v.policy); }
  static void add(Digest& to, const ClassDefined& v) { add_all(to, v.id, v.spec); }
  static void add(Digest& to, const NodeRegistered& v) {
    add_all(to, v.node, v.owner, v.site, v.capacity, v.gpus, v.driver, v.owner_floor);
  }
  static void add(Digest& to, const NodeReadyChanged& v) { add_all(to, v.node, v.ready); }
  static void add(Digest& to, const NodeListingChanged& v) { add_all(to, v.node, v.listing, v.at); }
  static void add(Digest& to, const NodeLeftSupply& v) { add(to, v.node); }
  static void add(Digest& to, const NodeLost& v) { add_all(to, v.node, v.last_acknowledged); }
  static void add(Digest& to, const NodeRemoved& v) { add(to, v.node); }
  static void add(Digest& to, const GpuStateChanged& v) { add_all(to, v.gpu, v.state); }
  static void add(Digest& to, const QuoteIssued& v) { add(to, v.quote); }
  static void add(Digest& to, const QuoteClosed& v) { add(to, v.id); }
  static void add(Digest& to, const OrderQueued& v) { add(to, v.order); }
  static void add(Digest& to, const OrderClosed& v) { add_all(to, v.id, v.tenant, v.reason); }
  static void add(Digest& to, const LeaseGranted& v) { add(to, v.lease); }
  static void add(Digest& to, const LeaseRunning& v) { add_all(to, v.id, v.rank, v.since); }
  static void add(Digest& to, const LeaseExtended& v) {
    add_all(to, v.id, v.end, v.slot_prices, v.policy, v.quoted, v.price_limit);
  }
  static void add(Digest& to, const LeaseEnding& v) {
    add_all(to, v.id, v.reason, v.at, v.detail, v.exit_code);
  }
  static void add(Digest& to, const LeaseEnded& v) {
    add_all(to, v.id, v.order, v.tenant, v.reason, v.at, v.billed_from, v.billed, v.charged,
            v.quoted, v.exit_code, v.detail, v.fee);
  }
  static void add(Digest& to, const LeaseStarted& v) { add_all(to, v.id, v.at, v.attempts); }
  static void add(Digest& to, const LeaseMoved& v) { add_all(to, v.id, v.at, v.ranks, v.detail); }
  static void add(Digest& to, const LeaseDelayed& v) { add_all(to, v.id, v.at, v.detail); }
  static void add(Digest& to, const LeaseCancelled& v) { add_all(to, v.id, v.at); }
  static void add(Digest& to, const JobGiven& v) { add_all(to, v.id, v.at, v.restart, v.attempts); }
  static void add(Digest& to, const DemandCurveSet& v) {
    add_all(to, v.gpu_class, v.site, v.first, v.gpus);
  }
  static void add(Digest& to, const SlotClosed& v) { add_all(to, v.slot, v.at, v.pools); }
  static void add(Digest& to, const PricesMoved& v) { add_all(to, v.at, v.prices); }
  static void add(Digest& to, const OrdersReviewed& v) { add(to, v.at); }
  static void add(Digest& to, const CountersSet& v) {
    add_all(to, v.next_id, v.last_stamp, v.review_due, v.open_slot);
  }
};

}  // namespace

std::uint64_t digest(const State& state) {
  Digest total;
  for (const Event& event : snapshot(state)) {
    total.add(std::uint64_t{event.index()});
    std::visit([&](const auto& kind) { Fields::add(total, kind); }, event);
  }
  return total.value();
}

}  // namespace bmgpu::core
