#include <google/protobuf/arena.h>
#include <xxhash.h>

#include "store/encoding.h"
#include "store/schema_enums.h"

namespace bmgpu::store {
namespace {

// put(value, message), one per type. The structured bindings are what makes them exhaustive: a
// field that core adds does not compile until it is written here (and read in decode.cc).

void put_prices(const std::vector<Price>& prices,
                google::protobuf::RepeatedField<std::int64_t>* to) {
  to->Reserve(static_cast<int>(prices.size()));
  for (const Price price : prices) {
    to->AddAlreadyReserved(price.count());
  }
}

void put(const core::MarketPolicy& value, v1::MarketPolicy* to) {
  const auto& [version, currency, base_prices, base_default_micros_per_gpu_hour, demand_k_permille,
               duration_decay_permille, floor_permille, load_threshold_permille,
               load_slope_permille, surge_cap_permille, quote_lifetime, billed_min, preparation_max,
               waiting_max, load_horizon, price_tick, delisted_supply, turnaround,
               cancel_fee_permille, drivers_accepted] = value;
  to->set_version(version.value());
  to->set_currency(currency);
  for (const core::BasePrice& base : base_prices) {
    v1::BasePrice* entry = to->add_base_prices();
    entry->set_words(base.words);
    entry->set_micros_per_gpu_hour(base.micros_per_gpu_hour);
  }
  to->set_base_default_micros_per_gpu_hour(base_default_micros_per_gpu_hour);
  to->set_demand_k_permille(demand_k_permille);
  to->set_duration_decay_permille(duration_decay_permille);
  to->set_floor_permille(floor_permille);
  to->set_load_threshold_permille(load_threshold_permille);
  to->set_load_slope_permille(load_slope_permille);
  to->set_surge_cap_permille(surge_cap_permille);
  to->set_quote_lifetime_ms(quote_lifetime.count());
  to->set_billed_min_ms(billed_min.count());
  to->set_preparation_max_ms(preparation_max.count());
  to->set_waiting_max_ms(waiting_max.count());
  to->set_load_horizon_ms(load_horizon.count());
  to->set_price_tick_ms(price_tick.count());
  to->set_delisted_supply_ms(delisted_supply.count());
  to->set_drivers_accepted(to_schema(drivers_accepted));
  to->set_turnaround_ms(turnaround.count());
  to->set_cancel_fee_permille(cancel_fee_permille);
}

void put(const core::GpuClassSpec& value, v1::GpuClassSpec* to) {
  const auto& [model, memory_mib, form] = value;
  to->set_model(model);
  to->set_memory_mib(memory_mib);
  to->set_form(to_schema(form));
}

void put(const core::NodeCapacity& value, v1::NodeCapacity* to) {
  const auto& [cpu_millis, memory_mib, scratch_mib] = value;
  to->set_cpu_millis(cpu_millis);
  to->set_memory_mib(memory_mib);
  to->set_scratch_mib(scratch_mib);
}

void put(const core::Resources& value, v1::Resources* to) {
  const auto& [gpus, gpu_words, gpu_memory_mib_min, cpu_millis, memory_mib, scratch_mib] = value;
  to->set_gpus(gpus);
  to->set_gpu_words(gpu_words);
  to->set_gpu_memory_mib_min(gpu_memory_mib_min);
  to->set_cpu_millis(cpu_millis);
  to->set_memory_mib(memory_mib);
  to->set_scratch_mib(scratch_mib);
}

void put(const core::RankPlacement& value, v1::RankPlacement* to) {
  const auto& [node, items, cpu_millis, memory_mib, scratch_mib] = value;
  to->set_node(node.value());
  for (const core::Item& item : items) {
    v1::Item* entry = to->add_items();
    entry->set_gpu(item.gpu.value());
    entry->set_thousandths(item.thousandths);
    entry->set_memory_mib(item.memory_mib);
  }
  to->set_cpu_millis(cpu_millis);
  to->set_memory_mib(memory_mib);
  to->set_scratch_mib(scratch_mib);
}

void put(const core::Allocation& value, v1::Allocation* to) {
  const auto& [from, until, ranks] = value;
  to->set_from_unix_ms(from.unix_ms());
  to->set_until_unix_ms(until.unix_ms());
  for (const core::RankPlacement& rank : ranks) {
    put(rank, to->add_ranks());
  }
}

void put(const core::Attempt& value, v1::Attempt* to) {
  const auto& [number, incarnation, state] = value;
  to->set_number(number.value());
  to->set_incarnation(incarnation.value());
  to->set_state(to_schema(state));
}

void put(const core::Lease& value, v1::Lease* to) {
  const auto& [id, order, tenant, gpu_class, site, gpus, start, end, slot_prices, allocations,
               attempts, policy, restart, state, running_since, ending, ending_since, ending_detail,
               exit_code, price_limit, quoted, billed_min, placed, started, preparing_since,
               owner_floor, cancel_fee_permille, without_job, delayed] = value;
  to->set_id(id.value());
  to->set_order(order.value());
  to->set_tenant(tenant.value());
  to->set_gpu_class(gpu_class.value());
  to->set_site(site.value());
  to->set_gpus(gpus);
  to->set_start_unix_ms(start.unix_ms());
  to->set_end_unix_ms(end.unix_ms());
  put_prices(slot_prices, to->mutable_slot_price_micros());
  for (const core::Allocation& allocation : allocations) {
    put(allocation, to->add_allocations());
  }
  for (const core::Attempt& attempt : attempts) {
    put(attempt, to->add_attempts());
  }
  to->set_policy(policy.value());
  to->set_restart(to_schema(restart));
  to->set_state(to_schema(state));
  if (running_since) {
    to->set_running_since_unix_ms(running_since->unix_ms());
  }
  if (ending) {
    to->set_ending(to_schema(*ending));
  }
  if (ending_since) {
    to->set_ending_since_unix_ms(ending_since->unix_ms());
  }
  to->set_ending_detail(ending_detail);
  if (exit_code) {
    to->set_exit_code(*exit_code);
  }
  to->set_price_limit_micros(price_limit.count());
  to->set_quoted_micros(quoted.count());
  to->set_billed_min_ms(billed_min.count());
  to->set_placed_unix_ms(placed.unix_ms());
  to->set_started_unix_ms(started.unix_ms());
  to->set_preparing_since_unix_ms(preparing_since.unix_ms());
  to->set_owner_floor_micros(owner_floor.count());
  to->set_cancel_fee_permille(cancel_fee_permille);
  to->set_without_job(without_job);
  to->set_delayed(delayed);
}

void put(const core::TimeWish& value, v1::TimeWish* to) {
  const auto& [start, earliest, deadline, allowed] = value;
  to->set_start(to_schema(start));
  to->set_earliest_unix_ms(earliest.unix_ms());
  to->set_deadline_unix_ms(deadline.unix_ms());
  for (const core::Interval& interval : allowed) {
    v1::Interval* entry = to->add_allowed();
    entry->set_from_unix_ms(interval.from.unix_ms());
    entry->set_until_unix_ms(interval.until.unix_ms());
  }
}

void put(const core::Order& value, v1::Order* to) {
  const auto& [id, tenant, resources, duration, price_limit, restart, placed, gpu_class, site,
               without_job] = value;
  to->set_id(id.value());
  to->set_tenant(tenant.value());
  put(resources, to->mutable_resources());
  to->set_duration_ms(duration.count());
  to->set_price_limit_micros(price_limit.count());
  to->set_restart(to_schema(restart));
  to->set_placed_unix_ms(placed.unix_ms());
  to->set_gpu_class(gpu_class.value());
  to->set_site(site.value());
  to->set_without_job(without_job);
}

void put(const core::Quote& value, v1::Quote* to) {
  const auto& [id, tenant, resources, gpu_class, site, owner_floor, duration, start, expires,
               slot_prices, total, factors, policy, wish, issued] = value;
  to->set_id(id.value());
  to->set_tenant(tenant.value());
  put(resources, to->mutable_resources());
  to->set_gpu_class(gpu_class.value());
  to->set_site(site.value());
  to->set_duration_ms(duration.count());
  to->set_start_unix_ms(start.unix_ms());
  to->set_expires_unix_ms(expires.unix_ms());
  put_prices(slot_prices, to->mutable_slot_price_micros());
  to->set_total_micros(total.count());
  for (const core::PriceFactor& factor : factors) {
    v1::PriceFactor* entry = to->add_factors();
    entry->set_name(factor.name);
    entry->set_value(factor.value);
    entry->set_price_micros_after(factor.after.count());
  }
  to->set_policy(policy.value());
  to->set_owner_floor_micros(owner_floor.count());
  put(wish, to->mutable_wish());
  to->set_issued_unix_ms(issued.unix_ms());
}

// add(event, message): exhaustive, because std::visit does not compile without one of them.

void add(const core::PolicySet& value, v1::Event* to) {
  const auto& [policy] = value;
  put(policy, to->mutable_policy_set()->mutable_policy());
}

void add(const core::ClassDefined& value, v1::Event* to) {
  const auto& [id, spec] = value;
  v1::ClassDefined* event = to->mutable_class_defined();
  event->set_id(id.value());
  put(spec, event->mutable_spec());
}

void add(const core::NodeRegistered& value, v1::Event* to) {
  const auto& [node, owner, site, capacity, gpus, driver, owner_floor] = value;
  v1::NodeRegistered* event = to->mutable_node_registered();
  event->set_node(node.value());
  event->set_owner(owner.value());
  event->set_site(site.value());
  put(capacity, event->mutable_capacity());
  for (const core::RegisteredGpu& gpu : gpus) {
    v1::RegisteredGpu* entry = event->add_gpus();
    entry->set_id(gpu.id.value());
    entry->set_gpu_class(gpu.gpu_class.value());
    entry->set_uuid(gpu.uuid);
  }
  event->set_driver(to_schema(driver));
  event->set_owner_floor_micros(owner_floor.count());
}

void add(const core::NodeReadyChanged& value, v1::Event* to) {
  const auto& [node, ready] = value;
  v1::NodeReadyChanged* event = to->mutable_node_ready_changed();
  event->set_node(node.value());
  event->set_ready(ready);
}

void add(const core::NodeListingChanged& value, v1::Event* to) {
  const auto& [node, listing, at] = value;
  v1::NodeListingChanged* event = to->mutable_node_listing_changed();
  event->set_node(node.value());
  event->set_listing(to_schema(listing));
  event->set_at_unix_ms(at.unix_ms());
}

void add(const core::NodeLost& value, v1::Event* to) {
  const auto& [node, last_acknowledged] = value;
  v1::NodeLost* event = to->mutable_node_lost();
  event->set_node(node.value());
  event->set_last_acknowledged_unix_ms(last_acknowledged.unix_ms());
}

void add(const core::GpuStateChanged& value, v1::Event* to) {
  const auto& [gpu, state] = value;
  v1::GpuStateChanged* event = to->mutable_gpu_state_changed();
  event->set_gpu(gpu.value());
  event->set_state(to_schema(state));
}

void add(const core::QuoteIssued& value, v1::Event* to) {
  const auto& [quote] = value;
  put(quote, to->mutable_quote_issued()->mutable_quote());
}

void add(const core::QuoteClosed& value, v1::Event* to) {
  const auto& [id] = value;
  to->mutable_quote_closed()->set_id(id.value());
}

void add(const core::OrderQueued& value, v1::Event* to) {
  const auto& [order] = value;
  put(order, to->mutable_order_queued()->mutable_order());
}

void add(const core::OrderClosed& value, v1::Event* to) {
  const auto& [id, tenant, reason] = value;
  v1::OrderClosed* event = to->mutable_order_closed();
  event->set_id(id.value());
  event->set_tenant(tenant.value());
  event->set_reason(to_schema(reason));
}

void add(const core::LeaseGranted& value, v1::Event* to) {
  const auto& [lease] = value;
  put(lease, to->mutable_lease_granted()->mutable_lease());
}

void add(const core::LeaseRunning& value, v1::Event* to) {
  const auto& [id, rank, since] = value;
  v1::LeaseRunning* event = to->mutable_lease_running();
  event->set_id(id.value());
  event->set_rank(rank);
  event->set_since_unix_ms(since.unix_ms());
}

void add(const core::LeaseExtended& value, v1::Event* to) {
  const auto& [id, end, slot_prices, policy, quoted, price_limit] = value;
  v1::LeaseExtended* event = to->mutable_lease_extended();
  event->set_id(id.value());
  event->set_end_unix_ms(end.unix_ms());
  put_prices(slot_prices, event->mutable_slot_price_micros());
  event->set_policy(policy.value());
  event->set_quoted_micros(quoted.count());
  event->set_price_limit_micros(price_limit.count());
}

void add(const core::LeaseEnding& value, v1::Event* to) {
  const auto& [id, reason, at, detail, exit_code] = value;
  v1::LeaseEnding* event = to->mutable_lease_ending();
  event->set_id(id.value());
  event->set_reason(to_schema(reason));
  event->set_at_unix_ms(at.unix_ms());
  event->set_detail(detail);
  if (exit_code) {
    event->set_exit_code(*exit_code);
  }
}

void add(const core::LeaseEnded& value, v1::Event* to) {
  const auto& [id, order, tenant, reason, at, billed_from, billed, charged, quoted, exit_code,
               detail, fee] = value;
  v1::LeaseEnded* event = to->mutable_lease_ended();
  event->set_id(id.value());
  event->set_order(order.value());
  event->set_tenant(tenant.value());
  event->set_reason(to_schema(reason));
  event->set_at_unix_ms(at.unix_ms());
  if (billed_from) {
    event->set_billed_from_unix_ms(billed_from->unix_ms());
  }
  event->set_billed_ms(billed.count());
  event->set_charged_micros(charged.count());
  event->set_quoted_micros(quoted.count());
  if (exit_code) {
    event->set_exit_code(*exit_code);
  }
  event->set_detail(detail);
  event->set_fee_micros(fee.count());
}

void add(const core::LeaseStarted& value, v1::Event* to) {
  const auto& [id, at, attempts] = value;
  v1::LeaseStarted* event = to->mutable_lease_started();
  event->set_id(id.value());
  event->set_at_unix_ms(at.unix_ms());
  for (const core::Attempt& attempt : attempts) {
    put(attempt, event->add_attempts());
  }
}

void add(const core::LeaseMoved& value, v1::Event* to) {
  const auto& [id, at, ranks, detail] = value;
  v1::LeaseMoved* event = to->mutable_lease_moved();
  event->set_id(id.value());
  event->set_at_unix_ms(at.unix_ms());
  for (const core::RankPlacement& rank : ranks) {
    put(rank, event->add_ranks());
  }
  event->set_detail(detail);
}

void add(const core::LeaseDelayed& value, v1::Event* to) {
  const auto& [id, at, detail] = value;
  v1::LeaseDelayed* event = to->mutable_lease_delayed();
  event->set_id(id.value());
  event->set_at_unix_ms(at.unix_ms());
  event->set_detail(detail);
}

void add(const core::LeaseCancelled& value, v1::Event* to) {
  const auto& [id, at] = value;
  to->mutable_lease_cancelled()->set_id(id.value());
  to->mutable_lease_cancelled()->set_at_unix_ms(at.unix_ms());
}

void add(const core::JobGiven& value, v1::Event* to) {
  const auto& [id, at, restart, attempts] = value;
  v1::JobGiven* event = to->mutable_job_given();
  event->set_id(id.value());
  event->set_at_unix_ms(at.unix_ms());
  event->set_restart(to_schema(restart));
  for (const core::Attempt& attempt : attempts) {
    put(attempt, event->add_attempts());
  }
}

void add(const core::DemandCurveSet& value, v1::Event* to) {
  const auto& [gpu_class, site, first, gpus] = value;
  v1::DemandCurveSet* event = to->mutable_demand_curve_set();
  event->set_gpu_class(gpu_class.value());
  event->set_site(site.value());
  event->set_first_slot(first.count());
  event->mutable_gpus()->Add(gpus.begin(), gpus.end());
}

void add(const core::SlotClosed& value, v1::Event* to) {
  const auto& [slot, at, pools] = value;
  v1::SlotClosed* event = to->mutable_slot_closed();
  event->set_slot(slot.count());
  event->set_at_unix_ms(at.unix_ms());
  for (const core::ClosedPool& pool : pools) {
    const auto& [gpu_class, site, price, demand, supply] = pool;
    v1::ClosedPool* entry = event->add_pools();
    entry->set_gpu_class(gpu_class.value());
    entry->set_site(site.value());
    entry->set_price_micros(price.count());
    entry->set_demand(demand);
    entry->set_supply(supply);
  }
}

void add(const core::CountersSet& value, v1::Event* to) {
  const auto& [next_id, last_stamp, review_due, open_slot] = value;
  v1::CountersSet* event = to->mutable_counters_set();
  event->set_next_id(next_id);
  event->set_last_stamp_unix_ms(last_stamp.unix_ms());
  event->set_review_due(review_due);
  event->set_open_slot(open_slot.count());
}

void add(const core::NodeRemoved& value, v1::Event* to) {
  const auto& [node] = value;
  to->mutable_node_removed()->set_node(node.value());
}

void add(const core::NodeLeftSupply& value, v1::Event* to) {
  const auto& [node] = value;
  to->mutable_node_left_supply()->set_node(node.value());
}

void add(const core::PricesMoved& value, v1::Event* to) {
  const auto& [at, prices] = value;
  v1::PricesMoved* event = to->mutable_prices_moved();
  event->set_at_unix_ms(at.unix_ms());
  for (const core::PoolPrice& price : prices) {
    const auto& [gpu_class, site, last] = price;
    v1::PoolPrice* entry = event->add_prices();
    entry->set_gpu_class(gpu_class.value());
    entry->set_site(site.value());
    entry->set_last_micros(last.count());
  }
}

void add(const core::OrdersReviewed& value, v1::Event* to) {
  const auto& [at] = value;
  to->mutable_orders_reviewed()->set_at_unix_ms(at.unix_ms());
}

}  // namespace

// Of an ordinary batch nothing reaches the heap: the arena's first block is kept.
struct EventEncoder::Buffers {
  Buffers() : arena(first_block.data(), first_block.size()) {}

  std::vector<char> first_block = std::vector<char>(std::size_t{256} << 10);
  google::protobuf::Arena arena;
  std::string bytes;
};

EventEncoder::EventEncoder() : buffers_(std::make_unique<Buffers>()) {}
EventEncoder::~EventEncoder() = default;

std::string_view EventEncoder::encode(std::span<const core::Event> events) {
  auto* list = google::protobuf::Arena::CreateMessage<v1::EventList>(&buffers_->arena);
  list->mutable_events()->Reserve(static_cast<int>(events.size()));
  for (const core::Event& event : events) {
    std::visit([&](const auto& kind) { add(kind, list->add_events()); }, event);
  }
  const std::size_t size = list->ByteSizeLong();
  check(size <= kEncodedBytesMax, "journal: more events in one list than a row can hold");
  buffers_->bytes.resize(size);
  check(list->SerializeToArray(buffers_->bytes.data(), static_cast<int>(size)),
        "journal: events could not be encoded");
  buffers_->arena.Reset();
  return buffers_->bytes;
}

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace bmgpu::store
