#include <optional>
#include <utility>

#include "store/encoding.h"
#include "store/schema_enums.h"

namespace bmgpu::store {
namespace {

// Reads messages into core values. What cannot be is noted in `bad`, once, and reading goes on with
// a default, so that every reader stays a plain expression; the caller looks at `bad` at the end.
class Reader {
 public:
  const char* bad() const { return bad_; }

  std::optional<core::Event> event(const v1::Event& from);

 private:
  template <typename Schema>
  auto enumerator(Schema value) {
    using Domain = typename decltype(from_schema(value))::value_type;
    const std::optional<Domain> known = from_schema(value);
    if (!known) {
      bad_ = "a value out of its range";
    }
    return known.value_or(Domain{});
  }

  core::MarketPolicy policy(const v1::MarketPolicy& from);
  core::Lease lease(const v1::Lease& from);
  core::Quote quote(const v1::Quote& from);
  core::Order order(const v1::Order& from);
  core::Allocation allocation(const v1::Allocation& from);
  core::TimeWish wish(const v1::TimeWish& from);
  std::vector<core::Attempt> attempts(const google::protobuf::RepeatedPtrField<v1::Attempt>& from);
  core::NodeRegistered node_registered(const v1::NodeRegistered& from);
  core::LeaseEnding lease_ending(const v1::LeaseEnding& from);
  core::LeaseEnded lease_ended(const v1::LeaseEnded& from);
  std::optional<core::Event> book_event(const v1::Event& from);

  const char* bad_ = nullptr;
};

std::vector<Price> prices(const google::protobuf::RepeatedField<std::int64_t>& from) {
  std::vector<Price> to;
  to.reserve(static_cast<std::size_t>(from.size()));
  for (const std::int64_t micros : from) {
    to.push_back(Price(micros));
  }
  return to;
}

core::Resources resources(const v1::Resources& from) {
  core::Resources to;
  to.gpus = from.gpus();
  to.gpu_words = from.gpu_words();
  to.gpu_memory_mib_min = from.gpu_memory_mib_min();
  to.cpu_millis = from.cpu_millis();
  to.memory_mib = from.memory_mib();
  to.scratch_mib = from.scratch_mib();
  return to;
}

core::RankPlacement rank_placement(const v1::RankPlacement& from) {
  core::RankPlacement to;
  to.node = NodeId(from.node());
  to.items.reserve(static_cast<std::size_t>(from.items_size()));
  for (const v1::Item& item : from.items()) {
    to.items.push_back({GpuId(item.gpu()), item.thousandths(), item.memory_mib()});
  }
  to.cpu_millis = from.cpu_millis();
  to.memory_mib = from.memory_mib();
  to.scratch_mib = from.scratch_mib();
  return to;
}

core::MarketPolicy Reader::policy(const v1::MarketPolicy& from) {
  core::MarketPolicy to;
  to.version = PolicyVersion(from.version());
  to.currency = from.currency();
  for (const v1::BasePrice& base : from.base_prices()) {
    to.base_prices.push_back({base.words(), base.micros_per_gpu_hour()});
  }
  to.base_default_micros_per_gpu_hour = from.base_default_micros_per_gpu_hour();
  to.demand_k_permille = from.demand_k_permille();
  to.duration_decay_permille = from.duration_decay_permille();
  to.floor_permille = from.floor_permille();
  to.load_threshold_permille = from.load_threshold_permille();
  to.load_slope_permille = from.load_slope_permille();
  to.surge_cap_permille = from.surge_cap_permille();
  to.quote_lifetime = milliseconds(from.quote_lifetime_ms());
  to.billed_min = milliseconds(from.billed_min_ms());
  to.preparation_max = milliseconds(from.preparation_max_ms());
  to.waiting_max = milliseconds(from.waiting_max_ms());
  to.load_horizon = milliseconds(from.load_horizon_ms());
  to.price_tick = milliseconds(from.price_tick_ms());
  to.delisted_supply = milliseconds(from.delisted_supply_ms());
  to.drivers_accepted = enumerator(from.drivers_accepted());
  if (from.has_turnaround_ms()) {
    to.turnaround = milliseconds(from.turnaround_ms());
  }
  if (from.has_cancel_fee_permille()) {
    to.cancel_fee_permille = from.cancel_fee_permille();
  }
  return to;
}

std::vector<core::Attempt> Reader::attempts(
    const google::protobuf::RepeatedPtrField<v1::Attempt>& from) {
  std::vector<core::Attempt> to;
  for (const v1::Attempt& attempt : from) {
    to.push_back({AttemptNumber(attempt.number()), Incarnation(attempt.incarnation()),
                  enumerator(attempt.state())});
  }
  return to;
}

core::TimeWish Reader::wish(const v1::TimeWish& from) {
  core::TimeWish to;
  to.start = enumerator(from.start());
  to.earliest = Instant(from.earliest_unix_ms());
  to.deadline = Instant(from.deadline_unix_ms());
  for (const v1::Interval& interval : from.allowed()) {
    to.allowed.push_back({Instant(interval.from_unix_ms()), Instant(interval.until_unix_ms())});
  }
  return to;
}

core::Allocation Reader::allocation(const v1::Allocation& from) {
  core::Allocation to;
  to.from = Instant(from.from_unix_ms());
  to.until = Instant(from.until_unix_ms());
  for (const v1::RankPlacement& rank : from.ranks()) {
    to.ranks.push_back(rank_placement(rank));
  }
  return to;
}

core::Lease Reader::lease(const v1::Lease& from) {
  core::Lease to;
  to.id = LeaseId(from.id());
  to.order = OrderId(from.order());
  to.tenant = AccountId(from.tenant());
  to.gpu_class = ClassId(from.gpu_class());
  to.site = SiteId(from.site());
  to.gpus = from.gpus();
  to.start = Instant(from.start_unix_ms());
  to.end = Instant(from.end_unix_ms());
  to.slot_prices = prices(from.slot_price_micros());
  for (const v1::Allocation& entry : from.allocations()) {
    to.allocations.push_back(allocation(entry));
  }
  to.attempts = attempts(from.attempts());
  to.policy = PolicyVersion(from.policy());
  to.restart = enumerator(from.restart());
  to.state = enumerator(from.state());
  if (from.has_running_since_unix_ms()) {
    to.running_since = Instant(from.running_since_unix_ms());
  }
  if (from.ending() != v1::END_REASON_NONE) {
    to.ending = enumerator(from.ending());
  }
  if (from.has_ending_since_unix_ms()) {
    to.ending_since = Instant(from.ending_since_unix_ms());
  }
  to.ending_detail = from.ending_detail();
  if (from.has_exit_code()) {
    to.exit_code = from.exit_code();
  }
  to.price_limit = Price(from.price_limit_micros());
  to.quoted = Money(from.quoted_micros());
  to.billed_min = Duration(from.billed_min_ms());
  const auto or_start = [&](bool has, std::int64_t unix_ms) {
    return has ? Instant(unix_ms) : to.start;
  };
  to.placed = or_start(from.has_placed_unix_ms(), from.placed_unix_ms());
  to.started = or_start(from.has_started_unix_ms(), from.started_unix_ms());
  to.preparing_since = or_start(from.has_preparing_since_unix_ms(), from.preparing_since_unix_ms());
  to.owner_floor = Price(from.owner_floor_micros());
  to.cancel_fee_permille = from.cancel_fee_permille();
  to.without_job = from.without_job();
  to.delayed = from.delayed();
  return to;
}

core::Order Reader::order(const v1::Order& from) {
  core::Order to;
  to.id = OrderId(from.id());
  to.tenant = AccountId(from.tenant());
  to.resources = resources(from.resources());
  to.duration = milliseconds(from.duration_ms());
  to.price_limit = Price(from.price_limit_micros());
  to.restart = enumerator(from.restart());
  to.placed = Instant(from.placed_unix_ms());
  to.gpu_class = ClassId(from.gpu_class());
  to.site = SiteId(from.site());
  to.without_job = from.without_job();
  return to;
}

core::Quote Reader::quote(const v1::Quote& from) {
  core::Quote to;
  to.id = QuoteId(from.id());
  to.tenant = AccountId(from.tenant());
  to.resources = resources(from.resources());
  to.gpu_class = ClassId(from.gpu_class());
  to.site = SiteId(from.site());
  to.duration = milliseconds(from.duration_ms());
  to.start = Instant(from.start_unix_ms());
  to.expires = Instant(from.expires_unix_ms());
  to.slot_prices = prices(from.slot_price_micros());
  to.total = Money(from.total_micros());
  for (const v1::PriceFactor& factor : from.factors()) {
    to.factors.push_back({factor.name(), factor.value(), Price(factor.price_micros_after())});
  }
  to.policy = PolicyVersion(from.policy());
  to.owner_floor = Price(from.owner_floor_micros());
  if (from.has_wish()) {
    to.wish = wish(from.wish());
  }
  to.issued = from.has_issued_unix_ms() ? Instant(from.issued_unix_ms()) : to.start;
  return to;
}

core::PricesMoved prices_moved(const v1::PricesMoved& from) {
  core::PricesMoved to;
  to.at = Instant(from.at_unix_ms());
  for (const v1::PoolPrice& price : from.prices()) {
    to.prices.push_back(
        {ClassId(price.gpu_class()), SiteId(price.site()), Price(price.last_micros())});
  }
  return to;
}

core::NodeRegistered Reader::node_registered(const v1::NodeRegistered& from) {
  core::NodeRegistered to;
  to.node = NodeId(from.node());
  to.owner = AccountId(from.owner());
  to.site = SiteId(from.site());
  to.capacity = {from.capacity().cpu_millis(), from.capacity().memory_mib(),
                 from.capacity().scratch_mib()};
  for (const v1::RegisteredGpu& gpu : from.gpus()) {
    to.gpus.push_back({GpuId(gpu.id()), ClassId(gpu.gpu_class()), gpu.uuid()});
  }
  to.driver = enumerator(from.driver());
  to.owner_floor = Price(from.owner_floor_micros());
  return to;
}

core::LeaseExtended lease_extended(const v1::LeaseExtended& from) {
  core::LeaseExtended to;
  to.id = LeaseId(from.id());
  to.end = Instant(from.end_unix_ms());
  to.slot_prices = prices(from.slot_price_micros());
  to.policy = PolicyVersion(from.policy());
  to.quoted = Money(from.quoted_micros());
  to.price_limit = Price(from.price_limit_micros());
  return to;
}

core::LeaseEnding Reader::lease_ending(const v1::LeaseEnding& from) {
  core::LeaseEnding to;
  to.id = LeaseId(from.id());
  to.reason = enumerator(from.reason());
  to.at = Instant(from.at_unix_ms());
  to.detail = from.detail();
  if (from.has_exit_code()) {
    to.exit_code = from.exit_code();
  }
  return to;
}

core::LeaseEnded Reader::lease_ended(const v1::LeaseEnded& from) {
  core::LeaseEnded to;
  to.id = LeaseId(from.id());
  to.order = OrderId(from.order());
  to.tenant = AccountId(from.tenant());
  to.reason = enumerator(from.reason());
  to.at = Instant(from.at_unix_ms());
  if (from.has_billed_from_unix_ms()) {
    to.billed_from = Instant(from.billed_from_unix_ms());
  }
  to.billed = milliseconds(from.billed_ms());
  to.charged = Money(from.charged_micros());
  to.quoted = Money(from.quoted_micros());
  if (from.has_exit_code()) {
    to.exit_code = from.exit_code();
  }
  to.detail = from.detail();
  to.fee = Money(from.fee_micros());
  return to;
}

core::DemandCurveSet demand_curve(const v1::DemandCurveSet& from) {
  return {ClassId(from.gpu_class()),
          SiteId(from.site()),
          SlotNumber(from.first_slot()),
          {from.gpus().begin(), from.gpus().end()}};
}

core::SlotClosed slot_closed(const v1::SlotClosed& from) {
  core::SlotClosed to{SlotNumber(from.slot()), Instant(from.at_unix_ms()), {}};
  for (const v1::ClosedPool& pool : from.pools()) {
    to.pools.push_back({ClassId(pool.gpu_class()), SiteId(pool.site()), Price(pool.price_micros()),
                        pool.demand(), pool.supply()});
  }
  return to;
}

// The kinds that format 2 added.
std::optional<core::Event> Reader::book_event(const v1::Event& from) {
  switch (from.kind_case()) {
    case v1::Event::kLeaseStarted:
      return core::LeaseStarted{LeaseId(from.lease_started().id()),
                                Instant(from.lease_started().at_unix_ms()),
                                attempts(from.lease_started().attempts())};
    case v1::Event::kLeaseMoved: {
      core::LeaseMoved moved{LeaseId(from.lease_moved().id()),
                             Instant(from.lease_moved().at_unix_ms()),
                             {},
                             from.lease_moved().detail()};
      for (const v1::RankPlacement& rank : from.lease_moved().ranks()) {
        moved.ranks.push_back(rank_placement(rank));
      }
      return moved;
    }
    case v1::Event::kLeaseDelayed:
      return core::LeaseDelayed{LeaseId(from.lease_delayed().id()),
                                Instant(from.lease_delayed().at_unix_ms()),
                                from.lease_delayed().detail()};
    case v1::Event::kLeaseCancelled:
      return core::LeaseCancelled{LeaseId(from.lease_cancelled().id()),
                                  Instant(from.lease_cancelled().at_unix_ms())};
    case v1::Event::kJobGiven:
      return core::JobGiven{LeaseId(from.job_given().id()), Instant(from.job_given().at_unix_ms()),
                            enumerator(from.job_given().restart()),
                            attempts(from.job_given().attempts())};
    case v1::Event::kDemandCurveSet:
      return demand_curve(from.demand_curve_set());
    case v1::Event::kSlotClosed:
      return slot_closed(from.slot_closed());
    default:
      break;
  }
  bad_ = "a kind of event that this version does not know";
  return std::nullopt;
}

std::optional<core::Event> Reader::event(const v1::Event& from) {
  switch (from.kind_case()) {
    case v1::Event::kPolicySet:
      return core::PolicySet{policy(from.policy_set().policy())};
    case v1::Event::kClassDefined: {
      const v1::GpuClassSpec& spec = from.class_defined().spec();
      return core::ClassDefined{ClassId(from.class_defined().id()),
                                {spec.model(), spec.memory_mib(), enumerator(spec.form())}};
    }
    case v1::Event::kNodeRegistered:
      return node_registered(from.node_registered());
    case v1::Event::kNodeReadyChanged:
      return core::NodeReadyChanged{NodeId(from.node_ready_changed().node()),
                                    from.node_ready_changed().ready()};
    case v1::Event::kNodeListingChanged:
      return core::NodeListingChanged{NodeId(from.node_listing_changed().node()),
                                      enumerator(from.node_listing_changed().listing()),
                                      Instant(from.node_listing_changed().at_unix_ms())};
    case v1::Event::kNodeLost:
      return core::NodeLost{NodeId(from.node_lost().node()),
                            Instant(from.node_lost().last_acknowledged_unix_ms())};
    case v1::Event::kGpuStateChanged:
      return core::GpuStateChanged{GpuId(from.gpu_state_changed().gpu()),
                                   enumerator(from.gpu_state_changed().state())};
    case v1::Event::kQuoteIssued:
      return core::QuoteIssued{quote(from.quote_issued().quote())};
    case v1::Event::kQuoteClosed:
      return core::QuoteClosed{QuoteId(from.quote_closed().id())};
    case v1::Event::kOrderQueued:
      return core::OrderQueued{order(from.order_queued().order())};
    case v1::Event::kOrderClosed:
      return core::OrderClosed{OrderId(from.order_closed().id()),
                               AccountId(from.order_closed().tenant()),
                               enumerator(from.order_closed().reason())};
    case v1::Event::kLeaseGranted:
      return core::LeaseGranted{lease(from.lease_granted().lease())};
    case v1::Event::kLeaseRunning:
      return core::LeaseRunning{LeaseId(from.lease_running().id()), from.lease_running().rank(),
                                Instant(from.lease_running().since_unix_ms())};
    case v1::Event::kLeaseExtended:
      return lease_extended(from.lease_extended());
    case v1::Event::kLeaseEnding:
      return lease_ending(from.lease_ending());
    case v1::Event::kLeaseEnded:
      return lease_ended(from.lease_ended());
    case v1::Event::kCountersSet:
      return core::CountersSet{
          from.counters_set().next_id(), Instant(from.counters_set().last_stamp_unix_ms()),
          from.counters_set().review_due(), SlotNumber(from.counters_set().open_slot())};
    case v1::Event::kNodeRemoved:
      return core::NodeRemoved{NodeId(from.node_removed().node())};
    case v1::Event::kNodeLeftSupply:
      return core::NodeLeftSupply{NodeId(from.node_left_supply().node())};
    case v1::Event::kPricesMoved:
      return prices_moved(from.prices_moved());
    case v1::Event::kOrdersReviewed:
      return core::OrdersReviewed{Instant(from.orders_reviewed().at_unix_ms())};
    default:
      return book_event(from);
  }
}

}  // namespace

Result<void> decode_events(std::string_view bytes, std::vector<core::Event>& events) {
  v1::EventList list;
  if (bytes.size() > kEncodedBytesMax ||
      !list.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{ErrorCode::DataLoss, "stored events cannot be read: the bytes are torn"};
  }
  const std::size_t size_before = events.size();
  Reader reader;
  for (const v1::Event& stored : list.events()) {
    if (std::optional<core::Event> event = reader.event(stored)) {
      events.push_back(std::move(*event));
    }
    if (reader.bad() != nullptr) {
      events.resize(size_before);
      return Error{ErrorCode::DataLoss, std::string("stored events hold ") + reader.bad() +
                                            "; a newer bmd may have written them"};
    }
  }
  return {};
}

}  // namespace bmgpu::store
