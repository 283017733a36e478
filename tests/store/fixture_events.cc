#include "store/fixture_events.h"

namespace bmgpu::store {
namespace {

core::PolicySet policy() {
  core::PolicySet event;
  event.policy.version = PolicyVersion(2);
  event.policy.currency = "EUR";
  event.policy.base_prices = {{"a100", 1'500'000}, {"a40", 400'000}};
  event.policy.floor_permille = 250;
  event.policy.drivers_accepted = core::Driver::Real;
  return event;
}

core::NodeRegistered node() {
  core::NodeRegistered event;
  event.node = NodeId(2);
  event.owner = AccountId(4);
  event.site = SiteId(1);
  event.capacity = {64'000, 524'288, 1'048'576};
  event.gpus = {{GpuId(11), ClassId(1), "GPU-aaaa"}, {GpuId(12), ClassId(1), "GPU-bbbb"}};
  event.driver = core::Driver::Simulated;
  event.owner_floor = Price(100'000);
  return event;
}

core::Resources resources() { return {2, "a100 80gb", 40'960, 8'000, 65'536, 10'240}; }

core::QuoteIssued quote() {
  core::QuoteIssued event;
  event.quote.id = QuoteId(5);
  event.quote.tenant = AccountId(3);
  event.quote.resources = resources();
  event.quote.gpu_class = ClassId(1);
  event.quote.site = SiteId(1);
  event.quote.owner_floor = Price(100'000);
  event.quote.duration = hours(2);
  event.quote.start = kFixtureAt;
  event.quote.expires = kFixtureAt + seconds(60);
  event.quote.slot_prices = {Price(500'000), Price(450'000)};
  event.quote.total = Money(950'000);
  event.quote.factors = {{"base", "1.5 per hour", Price(375'000)}};
  event.quote.policy = PolicyVersion(2);
  event.quote.issued = kFixtureAt;  // format 1 says only the start
  return event;
}

core::OrderQueued order(OrderId id) {
  core::OrderQueued event;
  event.order.id = id;
  event.order.tenant = AccountId(3);
  event.order.resources = resources();
  event.order.duration = hours(2);
  event.order.price_limit = Price(600'000);
  event.order.restart = core::RestartPolicy::Never;
  event.order.placed = kFixtureAt - minutes(3);
  event.order.gpu_class = ClassId(1);
  event.order.site = SiteId(1);
  return event;
}

core::LeaseGranted lease() {
  core::LeaseGranted event;
  core::Lease& lease = event.lease;
  lease.id = LeaseId(10);
  lease.order = OrderId(9);
  lease.tenant = AccountId(3);
  lease.gpu_class = ClassId(1);
  lease.site = SiteId(1);
  lease.gpus = 2;
  lease.start = kFixtureAt;
  lease.end = kFixtureAt + hours(2);
  lease.slot_prices = {Price(500'000), Price(450'000)};
  core::RankPlacement rank;
  rank.node = NodeId(2);
  rank.items = {{GpuId(11), 1000, 81'920}, {GpuId(12), 500, 40'960}};
  rank.cpu_millis = 16'000;
  rank.memory_mib = 131'072;
  rank.scratch_mib = 20'480;
  lease.allocations = {{lease.start, lease.end, {rank}}};
  lease.attempts = {{AttemptNumber(1), Incarnation(1), core::AttemptState::Running}};
  lease.policy = PolicyVersion(2);
  lease.restart = core::RestartPolicy::Never;
  lease.state = core::LeaseState::Ending;
  lease.running_since = kFixtureAt + seconds(10);
  lease.ending = core::EndReason::Stopped;
  lease.ending_since = kFixtureAt + hours(1);
  lease.ending_detail = "by its tenant";
  lease.exit_code = -1;
  lease.price_limit = Price(600'000);
  lease.quoted = Money(950'000);
  lease.billed_min = minutes(15);
  lease.placed = lease.started = lease.preparing_since = lease.start;  // format 1: only that
  return event;
}

core::LeaseEnded ended() {
  core::LeaseEnded event;
  event.id = LeaseId(10);
  event.order = OrderId(9);
  event.tenant = AccountId(3);
  event.reason = core::EndReason::Stopped;
  event.at = kFixtureAt + hours(1);
  event.billed_from = kFixtureAt + seconds(10);
  event.billed = minutes(60) - seconds(10);
  event.charged = Money(700'000);
  event.quoted = Money(950'000);
  event.exit_code = 143;
  event.detail = "by its tenant";
  return event;
}

core::LeaseGranted booking() {
  core::LeaseGranted event = lease();
  core::Lease& booked = event.lease;
  booked.id = LeaseId(13);
  booked.order = OrderId(13);
  booked.start = kFixtureAt + hours(4);
  booked.end = kFixtureAt + hours(6);
  booked.allocations.back().from = booked.start;
  booked.allocations.back().until = booked.end;
  booked.attempts.clear();
  booked.state = core::LeaseState::Booked;
  booked.running_since = booked.ending_since = std::nullopt;
  booked.ending = std::nullopt;
  booked.ending_detail.clear();
  booked.exit_code = std::nullopt;
  booked.placed = kFixtureAt;
  booked.started = booked.preparing_since = booked.start;
  booked.owner_floor = Price(100'000);
  booked.cancel_fee_permille = 100;
  booked.without_job = true;
  booked.delayed = true;
  return event;
}

core::QuoteIssued window_quote() {
  core::QuoteIssued event = quote();
  event.quote.id = QuoteId(14);
  event.quote.start = kFixtureAt + hours(4);
  event.quote.wish = {core::StartKind::Cheapest,
                      kFixtureAt,
                      kFixtureAt + hours(24),
                      {{kFixtureAt + hours(3), kFixtureAt + hours(9)}}};
  return event;
}

core::PolicySet book_policy() {
  core::PolicySet event = policy();
  event.policy.version = PolicyVersion(3);
  event.policy.turnaround = seconds(90);
  event.policy.cancel_fee_permille = 0;
  return event;
}

std::vector<core::Event> events_of_1() {
  core::LeaseExtended extended;
  extended.id = LeaseId(10);
  extended.end = kFixtureAt + hours(3);
  extended.slot_prices = {Price(500'000), Price(450'000), Price(400'000)};
  extended.policy = PolicyVersion(2);
  extended.quoted = Money(1'350'000);
  extended.price_limit = Price(700'000);
  return {
      policy(),
      core::ClassDefined{ClassId(1), {"NVIDIA A100 80GB PCIe", 81'920, core::Form::Pcie}},
      node(),
      core::NodeReadyChanged{NodeId(2), true},
      core::NodeListingChanged{NodeId(2), core::NodeListing::Draining, kFixtureAt},
      core::NodeLeftSupply{NodeId(2)},
      core::NodeLost{NodeId(2), kFixtureAt - seconds(4)},
      core::GpuStateChanged{GpuId(11), core::GpuState::Sanitizing},
      quote(),
      core::QuoteClosed{QuoteId(5)},
      order(OrderId(8)),
      core::OrderClosed{OrderId(8), AccountId(3), core::EndReason::Expired},
      order(OrderId(9)),
      lease(),
      core::LeaseRunning{LeaseId(10), 0, kFixtureAt + seconds(10)},
      extended,
      core::LeaseEnding{LeaseId(10), core::EndReason::Stopped, kFixtureAt + hours(1),
                        "by its tenant", std::nullopt},
      ended(),
      core::PricesMoved{kFixtureAt, {{ClassId(1), SiteId(1), Price(375'000)}}},
      core::OrdersReviewed{kFixtureAt},
      core::CountersSet{77, kFixtureAt, true, SlotNumber()},
  };
}

// What format 2 added.
std::vector<core::Event> events_of_2() {
  core::OrderQueued reserve = order(OrderId(15));
  reserve.order.without_job = true;
  core::LeaseEnded cancelled = ended();
  cancelled.id = LeaseId(13);
  cancelled.order = OrderId(13);
  cancelled.reason = core::EndReason::HostUnavailable;
  cancelled.fee = Money(95'000);
  const std::vector<core::Attempt> attempts = {
      {AttemptNumber(1), Incarnation(2), core::AttemptState::Assigned}};
  return {
      book_policy(),
      window_quote(),
      reserve,
      booking(),
      core::LeaseMoved{LeaseId(13),
                       kFixtureAt,
                       {{NodeId(2), {{GpuId(12), 1000, 81'920}}, 1, 2, 3}},
                       "node-1 is lost"},
      core::LeaseDelayed{LeaseId(13), kFixtureAt + hours(4), "a GPU of node-2 is not clean yet"},
      core::LeaseStarted{LeaseId(13), kFixtureAt + hours(4), attempts},
      core::JobGiven{LeaseId(13), kFixtureAt + hours(5), core::RestartPolicy::Never, attempts},
      core::LeaseCancelled{LeaseId(13), kFixtureAt + hours(1)},
      cancelled,
      core::DemandCurveSet{ClassId(1), SiteId(1), SlotNumber(1'888'889), {8, 0, 12}},
      core::SlotClosed{
          SlotNumber(1'888'888), kFixtureAt, {{ClassId(1), SiteId(1), Price(375'000), 3, 8}}},
      core::CountersSet{78, kFixtureAt, true, SlotNumber(1'888'889)},
  };
}

}  // namespace

std::vector<core::Event> fixture_events(std::int64_t format) {
  std::vector<core::Event> events = events_of_1();
  if (format >= 2) {
    const std::vector<core::Event> added = events_of_2();
    events.insert(events.end(), added.begin(), added.end());
  }
  if (format >= 3) {
    events.push_back(core::NodeRemoved{NodeId(2)});
  }
  return events;
}

std::vector<Recorded> fixture_recorded(std::int64_t format) {
  std::vector<Recorded> recorded;
  for (const core::Event& event : fixture_events(format)) {
    recorded.push_back({Sequence(recorded.size() + 1), kFixtureAt, event});
  }
  return recorded;
}

Batch fixture_batch(std::int64_t format) {
  Batch batch;
  batch.at = kFixtureAt;
  batch.events = fixture_events(format);
  batch.documents = {{"job", 9, AccountId(3), "python train.py"}};
  StoredAnswer answer;
  answer.account = AccountId(3);
  answer.key = "0b6f-key";
  answer.request.fill(0xa5);
  answer.answer = "{\"id\":\"order-9\"}";
  answer.at = kFixtureAt;
  batch.answers = {answer};
  return batch;
}

}  // namespace bmgpu::store
