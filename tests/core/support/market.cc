#include "core/support/market.h"

#include "base/check.h"

namespace bmgpu::core {
namespace {

void check_snapshot(const State& state, std::uint64_t expected) {
  State loaded;
  for (const Event& event : snapshot(state)) {
    core::apply(loaded, event);
  }
  check_invariants(loaded);
  check(digest(loaded) == expected, "test market: a snapshot gives another state");
}

}  // namespace

Answer TestMarket::run(const Command& command) {
  Decision decision = decide(state_, Stamp{now_, incarnation_}, command);
  check(digest(state_) == digest_, "test market: decide changed the state");
  for (const Event& event : decision.events) {
    core::apply(state_, event);
    check_invariants(state_);
    core::apply(replayed_, event);
    history_.push_back(event);
  }
  const std::uint64_t after = decision.events.empty() ? digest_ : digest(state_);
  digest_ = after;
  check(digest(replayed_) == after, "test market: a replay gives another state");
  check_snapshot(state_, after);
  if (std::holds_alternative<Refused>(decision.answer)) {
    check(decision.events.empty(), "test market: a refusal with events");
    check(decision.requests.empty(), "test market: a refusal with requests");
  }
  last_events_ = std::move(decision.events);
  last_requests_ = std::move(decision.requests);
  return std::move(decision.answer);
}

void TestMarket::settle() {
  std::vector<Event> all;
  for (int ticks = 0; next_deadline(state_) && *next_deadline(state_) <= now_; ++ticks) {
    check(ticks < 10'000, "test market: ticks never settle");
    run(Tick{});
    check(!last_events_.empty(), "test market: a deadline without an event");
    all.insert(all.end(), last_events_.begin(), last_events_.end());
  }
  last_events_ = std::move(all);
}

void TestMarket::add_node(std::uint64_t node, std::int64_t gpus, const std::string& model,
                          std::int64_t gpu_memory_mib) {
  RegisterNode command;
  command.node = NodeId(node);
  command.owner = AccountId(900);
  command.site = SiteId(1);
  command.capacity = NodeCapacity{gpus * 8'000, gpus * 64'000, gpus * 100'000};
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    command.gpus.push_back({"n" + std::to_string(node) + "-" + std::to_string(gpu),
                            {model, gpu_memory_mib, Form::Pcie}});
  }
  run(command);
  run(SetNodeReady{NodeId(node), true});
}

Answer TestMarket::order(std::uint64_t tenant, std::int64_t gpus, Duration duration,
                         const std::string& words, Price limit) {
  PlaceOrder command;
  command.tenant = AccountId(tenant);
  command.resources.gpus = gpus;
  command.resources.gpu_words = words;
  command.duration = duration;
  command.price_limit = limit;
  return run(command);
}

Answer TestMarket::report_running(LeaseId lease) {
  const Attempt& attempt = state_.leases.at(lease).attempts.at(0);
  return run(ReportAttemptRunning{lease, 0, {attempt.incarnation, attempt.number}, now_});
}

Answer TestMarket::report_ended(LeaseId lease, EndReason reason) {
  const Attempt& attempt = state_.leases.at(lease).attempts.at(0);
  return run(ReportAttemptEnded{
      lease, 0, {attempt.incarnation, attempt.number}, reason, now_, std::nullopt, ""});
}

void TestMarket::clean_all() {
  std::vector<ReportGpu> reports;
  for (const auto& [id, node] : state_.nodes) {
    for (const GpuRecord& gpu : node.gpus) {
      if (gpu.state == GpuState::Sanitizing) {
        reports.push_back(ReportGpu{id, gpu.uuid, true, true});
      }
    }
  }
  for (const ReportGpu& report : reports) {
    run(report);
  }
}

LeaseId lease_in(const Answer& answer) {
  const auto* order = std::get_if<OrderAnswer>(&answer);
  check(order != nullptr, "test market: no order in the answer");
  check(order->lease.has_value(), "test market: the order waits");
  return *order->lease;
}

OrderId order_in(const Answer& answer) {
  const auto* order = std::get_if<OrderAnswer>(&answer);
  check(order != nullptr, "test market: no order in the answer");
  return order->order;
}

const Reason* refusal_in(const Answer& answer) {
  const auto* refused = std::get_if<Refused>(&answer);
  return refused != nullptr ? &refused->reason : nullptr;
}

const LeaseEnded* ended_in(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (const auto* ended = std::get_if<LeaseEnded>(&event)) {
      return ended;
    }
  }
  return nullptr;
}

}  // namespace bmgpu::core
