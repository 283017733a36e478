// Random commands to core and to a market that is written as plainly as possible must give the same
// answers, the same prices and the same bills. TestMarket checks the invariants after each event,
// and that a replay and a snapshot give the same state.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <sstream>

#include "base/prng.h"
#include "core/property/naive_market.h"
#include "core/support/market.h"
#include "core/support/text.h"
#include "core/views.h"

namespace bmgpu::core {
namespace {

using Step = std::array<std::uint16_t, 5>;  // what, and four choices

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  if (const auto* says = std::get_if<Says>(&outcome)) {
    return out << (says->refused ? "refused " + print(*says->refused) : "done");
  }
  if (const auto* waits = std::get_if<Waits>(&outcome)) {
    return out << "waits " << print(waits->code);
  }
  if (const auto* billed = std::get_if<Billed>(&outcome)) {
    return out << "billed " << print(billed->reason) << " " << billed->billed.count() << " ms, "
               << billed->charged.count();
  }
  const auto& leased = std::get<Leased>(outcome);
  out << "leased on node-" << leased.node.value() << " quoted " << leased.quoted.count() << ":";
  for (const std::string& uuid : leased.uuids) {
    out << " " << uuid;
  }
  for (const Price price : leased.prices) {
    out << " " << price.count();
  }
  return out;
}

class Both {
 public:
  Both() {
    add_node(1, "NVIDIA A100 80GB PCIe", 4, 900, 1, Price());
    add_node(2, "NVIDIA A100 80GB PCIe", 2, 900, 1, Price(180'000));
    add_node(3, "NVIDIA A40", 3, 900, 1, Price());
    add_node(4, "NVIDIA A100 80GB PCIe", 2, 900, 2, Price());
    add_node(5, "NVIDIA A40", 2, 3, 1, Price(60'000));  // its owner is tenant 3
    settle();
  }

  // Empty if both say the same.
  std::string run(const Step& step) {
    problem_.clear();
    const int what = step[0] % 28;
    if (what >= 24) {
      step[0] % 7 == 0 ? quote(step, wish(step)) : place(step, wish(step));
    } else if (what < 6) {
      place(step);
    } else if (what == 6) {
      quote(step);
    } else if (what == 7) {
      stop(step);
    } else if (what == 8) {
      extend(step);
    } else if (what < 14) {
      report_running(step);
    } else if (what < 16) {
      report_ended(step);
    } else if (what == 16) {
      report_gpu(step);
    } else if (what == 17) {
      change_node(step);
    } else if (what < 21) {
      core_.clean_all();
      clean_naive();
    } else if (what < 23) {
      advance(milliseconds(step[1] % 20'000));
    } else {
      advance(seconds(60 + step[1] % (step[2] % 16 == 0 ? 50'000 : 1'500)));
      settle();
    }
    return problem_;
  }

  // How often each kind of outcome came up.
  const std::map<std::string, int>& seen() const { return seen_; }

 private:
  void add_node(std::uint64_t id, const std::string& model, std::int64_t gpus, std::uint64_t owner,
                std::uint64_t site, Price floor) {
    RegisterNode command;
    command.node = NodeId(id);
    command.owner = AccountId(owner);
    command.site = SiteId(site);
    command.capacity = NodeCapacity{gpus * 8'000, gpus * 64'000, gpus * 100'000};
    command.owner_floor = floor;
    NaiveNode node{command.node, command.owner, command.site, model, floor, command.capacity};
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
      const std::string uuid = "n" + std::to_string(id) + "-" + std::to_string(gpu);
      command.gpus.push_back({uuid, {model, 80'000, Form::Pcie}});
      node.gpus.push_back(NaiveGpu{uuid});
    }
    core_.run(command);
    registered_[command.node] = command;
    naive_.add_node(node);
    core_.run(SetNodeReady{command.node, true});
    naive_.set_ready(command.node, true);
  }

  void expect(const char* what, const Outcome& core, const Outcome& naive) {
    const auto* billed = std::get_if<Billed>(&core);
    const bool is_paid = billed != nullptr && billed->charged.count() > 0;
    const auto* says = std::get_if<Says>(&core);
    const bool is_refused = says != nullptr && says->refused;
    constexpr const char* kKinds[] = {"done", "leased", "waits", "unpaid"};
    ++seen_[std::string(what) + " " +
            (is_refused ? "refused"
             : is_paid  ? "paid"
                        : kKinds[core.index()])];
    if (core != naive) {
      std::ostringstream text;
      text << what << ": core " << core << " | naive " << naive;
      problem_ = text.str();
    }
  }

  Resources resources(const Step& step) const {
    constexpr const char* kWords[] = {"", "a100", "a40", "a100", "h100"};
    Resources wanted;
    wanted.gpus = 1 + step[1] % 5;
    wanted.gpu_words = kWords[(step[2] % 32) / 7];
    wanted.cpu_millis = step[2] % 11 == 0 ? 12'000 : 0;
    wanted.memory_mib = step[2] % 13 == 0 ? 70'000 : 0;
    return wanted;
  }
  static Duration duration(const Step& step) {
    constexpr std::int64_t kSeconds[] = {60, 900, 1'200, 3'600, 3'661, 7'200, 45'000, 2'592'000};
    return seconds(kSeconds[step[3] % 8]);
  }
  static Price limit(const Step& step) {
    constexpr std::int64_t kLimits[] = {0, 0, 0, 80'000, 150'000, 200'000, 260'000, 400'000};
    return Price(kLimits[step[4] % 8]);
  }
  static AccountId tenant(const Step& step) { return AccountId(1 + (step[3] / 8) % 4); }

  static Leased leased(const Lease& lease, const State& state) {
    const RankPlacement& rank = lease.allocations.back().ranks.at(0);
    Leased outcome{rank.node, {}, lease.slot_prices, lease.quoted};
    for (const Item& item : rank.items) {
      for (const GpuRecord& gpu : state.nodes.at(rank.node).gpus) {
        if (gpu.id == item.gpu) {
          outcome.uuids.push_back(gpu.uuid);
        }
      }
    }
    return outcome;
  }

  Outcome outcome_of(const Answer& answer) const {
    if (const Reason* reason = refusal_in(answer)) {
      return Says{reason->code};
    }
    for (const Event& event : core_.last_events()) {
      if (const auto* granted = std::get_if<LeaseGranted>(&event)) {
        return leased(granted->lease, core_.state());
      }
      if (const auto* issued = std::get_if<QuoteIssued>(&event)) {
        return Leased{NodeId(), {}, issued->quote.slot_prices, issued->quote.total};
      }
      if (const auto* extended = std::get_if<LeaseExtended>(&event)) {
        return Leased{NodeId(), {}, extended->slot_prices, extended->quoted};
      }
      if (const auto* ended = std::get_if<LeaseEnded>(&event)) {
        return Billed{ended->reason, ended->billed, ended->charged};
      }
    }
    if (const auto* order = std::get_if<OrderAnswer>(&answer); order && order->waiting) {
      return Waits{order->waiting->code};
    }
    return Says{};
  }

  // A start, or a window, within the next days; some in the past, some beyond the book.
  TimeWish wish(const Step& step) const {
    const Duration offset = seconds((step[1] / 8) % 33 * 450) - seconds(900);
    TimeWish wish{StartKind::At, core_.now() + offset, Instant(), {}};
    if (step[4] % 32 < 2) {
      wish.earliest = wish.earliest + hours(14 * 24 - 6);
    }
    if (step[2] % 3 != 0) {  // most on borders of slots
      wish.earliest = slot_start(slot_of(wish.earliest));
    }
    if (step[0] % 2 == 0) {
      wish.start = StartKind::Cheapest;
      wish.deadline = wish.earliest + hours(1 + (step[2] / 32) % 20);
      if (step[2] % 5 == 0) {
        wish.allowed = {{wish.earliest + minutes(20), wish.earliest + hours(3)},
                        {wish.earliest + hours(4), wish.earliest + hours(9)}};
      }
    }
    return wish;
  }

  void place(const Step& step, const TimeWish& wish = {}) {
    PlaceOrder command;
    command.wish = wish;
    command.tenant = tenant(step);
    command.resources = resources(step);
    command.duration = duration(step);
    command.price_limit = limit(step);
    command.refuse_if_unavailable = step[4] % 16 > 12;
    const OrderId id(core_.state().next_id);
    const Outcome core = outcome_of(core_.run(command));
    expect("place", core, naive_.place(core_.now(), command, id));
  }

  void quote(const Step& step, const TimeWish& wish = {}) {
    const RequestQuote command{tenant(step), resources(step), duration(step), limit(step), wish};
    const Outcome core = outcome_of(core_.run(command));
    expect("quote", core, naive_.quote(core_.now(), command));
  }

  // One of the live orders, or one that never was.
  OrderId some_order(std::uint16_t choice) const {
    const auto orders = live_orders(core_.state(), AccountId());
    return orders.empty() || choice % 17 == 0 ? OrderId(1'000'000) : orders[choice % orders.size()];
  }
  AccountId owner_of(OrderId id, std::uint16_t choice) const {
    const auto order = find_order(core_.state(), id, core_.now());
    return order && choice % 9 != 0 ? order->tenant : AccountId(77);
  }

  void stop(const Step& step) {
    const OrderId id = some_order(step[1]);
    const AccountId by = owner_of(id, step[2]);
    const Outcome core = outcome_of(core_.run(StopOrder{by, id}));
    expect("stop", core, naive_.stop(core_.now(), by, id));
  }

  void extend(const Step& step) {
    const auto lease = some_lease(step[1]);
    const OrderId id = lease && step[2] % 8 > 0 ? OrderId(lease->value()) : some_order(step[1]);
    const ExtendLease command{owner_of(id, step[2]), id, duration(step), limit(step)};
    const Outcome core = outcome_of(core_.run(command));
    expect("extend", core, naive_.extend(core_.now(), command));
  }

  std::optional<LeaseId> some_lease(std::uint16_t choice) const {
    const auto& leases = core_.state().leases;
    if (leases.empty()) {
      return std::nullopt;
    }
    return std::next(leases.begin(), choice % static_cast<std::uint16_t>(leases.size()))->first;
  }

  bool has_attempt(LeaseId lease) const { return !core_.state().leases.at(lease).attempts.empty(); }

  void report_running(const Step& step) {
    const auto lease = some_lease(step[1]);
    if (lease && has_attempt(*lease)) {
      const Outcome core = outcome_of(core_.report_running(*lease));
      expect("running", core, naive_.report_running(core_.now(), OrderId(lease->value())));
    }
  }

  void report_ended(const Step& step) {
    constexpr EndReason kReasons[] = {EndReason::JobExited, EndReason::JobExited,
                                      EndReason::StartFailed, EndReason::OutOfMemory,
                                      EndReason::GpuLost};
    const auto lease = some_lease(step[1]);
    if (lease && has_attempt(*lease)) {
      const EndReason reason = kReasons[step[2] % 5];
      const Outcome core = outcome_of(core_.report_ended(*lease, reason));
      expect("ended", core, naive_.report_ended(core_.now(), OrderId(lease->value()), reason));
    }
  }

  void report_gpu(const Step& step) {
    const auto all = naive_.nodes();
    const NaiveNode& node = all[step[1] % all.size()];
    const std::string& uuid = node.gpus[step[2] % node.gpus.size()].uuid;
    const bool ok = step[3] % 5 != 0;
    const bool clean = step[4] % 3 != 0;
    core_.run(ReportGpu{node.id, uuid, ok, clean});
    naive_.report_gpu(core_.now(), uuid, ok, clean);
  }

  void clean_naive() {
    for (const NaiveNode& node : naive_.nodes()) {
      for (const NaiveGpu& gpu : node.gpus) {
        if (gpu.state == GpuState::Sanitizing) {
          naive_.report_gpu(core_.now(), gpu.uuid, true, true);
        }
      }
    }
  }

  void change_node(const Step& step) {
    const NodeId node(1 + step[1] % 5);
    const int what = step[2] % 16;
    if (what < 8) {
      const bool is_on = what < 7;
      core_.run(SetNodeReady{node, is_on});
      naive_.set_ready(node, is_on);
    } else if (what == 8 || what == 13) {
      const bool is_draining = what == 8;
      is_draining ? core_.run(DrainNode{node}) : core_.run(ResumeNode{node});
      naive_.set_draining(core_.now(), node, is_draining);
    } else if (what > 8 && what < 13) {
      replace(node, step[3] % 4 != 0);
    } else if (what == 14) {
      lose(node, core_.now() - seconds(step[3] % 100));
    } else {
      advance(hours(24));
    }
  }

  void replace(NodeId node, bool unready_first) {
    if (unready_first) {
      core_.run(SetNodeReady{node, false});
      naive_.set_ready(node, false);
    }
    const Outcome core = outcome_of(core_.run(RemoveNode{node}));
    expect("replace", core, naive_.replace(node));
    if (core == Outcome(Says{})) {
      core_.run(registered_.at(node));
      core_.run(RenewNode{node});
    }
  }

  void lose(NodeId node, Instant last_acknowledged) {
    core_.run(DeclareNodeLost{node, last_acknowledged});
    std::vector<Billed> bills;
    for (const Event& event : core_.last_events()) {
      if (const auto* ended = std::get_if<LeaseEnded>(&event)) {
        bills.push_back(Billed{ended->reason, ended->billed, ended->charged});
      }
    }
    if (bills != naive_.lose(core_.now(), node, last_acknowledged)) {
      problem_ = "lost: other bills";
    }
  }

  void advance(Duration by) {
    since_start_ += by;
    core_.at(since_start_);
  }

  // What became of a booking in a tick.
  static std::string booked_text(const Event& event) {
    const auto of = [](const char* what, LeaseId id) {
      return std::string(what) + " " + std::to_string(id.value());
    };
    if (const auto* moved = std::get_if<LeaseMoved>(&event)) return of("moved", moved->id);
    if (const auto* started = std::get_if<LeaseStarted>(&event)) return of("started", started->id);
    if (const auto* delayed = std::get_if<LeaseDelayed>(&event)) return of("delayed", delayed->id);
    if (const auto* ended = std::get_if<LeaseEnded>(&event)) {
      return of("ended", ended->id) + " charged " + std::to_string(ended->charged.count());
    }
    return "";
  }

  void settle() {
    core_.clear_last();
    core_.settle();
    std::vector<std::pair<OrderId, Leased>> granted;
    std::vector<std::string> booked;
    for (const Event& event : core_.last_events()) {
      if (const auto* grant = std::get_if<LeaseGranted>(&event)) {
        granted.emplace_back(grant->lease.order, leased(grant->lease, core_.state()));
      } else if (const std::string text = booked_text(event); !text.empty()) {
        booked.push_back(text);
      }
    }
    const auto expected = naive_.settle(core_.now());
    for (const std::string& text : booked) {
      ++seen_["booked " + text.substr(0, text.find(' '))];
    }
    if (booked != naive_.booked_events()) {
      problem_ = "settle: bookings differ";
      for (const std::string& text : booked) {
        problem_ += ", core " + text;
      }
      for (const std::string& text : naive_.booked_events()) {
        problem_ += ", naive " + text;
      }
    }
    if (granted.size() != expected.size()) {
      problem_ = "settle: core serves " + std::to_string(granted.size()) + " orders, naive " +
                 std::to_string(expected.size());
    }
    for (std::size_t i = 0; i < std::min(granted.size(), expected.size()); ++i) {
      if (granted[i].first != expected[i].first) {
        problem_ = "settle: another order is served";
      }
      expect("settle", granted[i].second, expected[i].second);
    }
    if (core_.state().waiting.size() != naive_.waiting().size()) {
      problem_ = "settle: other orders wait";
    }
  }

  TestMarket core_;
  NaiveMarket naive_;
  std::map<NodeId, RegisterNode> registered_;
  Duration since_start_;
  std::string problem_;
  std::map<std::string, int> seen_;
};

TEST(MarketPropertyTest, AgreesWithTheNaiveMarket) {
  const bool holds = rc::check("core agrees with the naive market", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(rc::gen::arbitrary<Step>());
    Both both;
    for (const Step& step : steps) {
      const std::string problem = both.run(step);
      RC_ASSERT(problem == std::string());
    }
  });
  EXPECT_TRUE(holds);
}

// Longer than what shrinks well: queues build up, prices move far, nodes leave and come back.
class LongRunTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LongRunTest, AgreesWithTheNaiveMarket) {
  Prng random(GetParam());
  Both both;
  for (int i = 0; i < 3'000; ++i) {
    Step step{};
    for (std::uint16_t& choice : step) {
      choice = static_cast<std::uint16_t>(random.below(65'536));
    }
    ASSERT_EQ(both.run(step), "") << "seed " << GetParam() << ", step " << i;
  }
  for (const char* outcome :
       {"place leased", "place waits", "place refused", "quote leased", "quote refused",
        "stop done", "stop refused", "extend leased", "extend refused", "running done",
        "ended paid", "ended unpaid", "settle leased", "replace done", "replace refused"}) {
    EXPECT_GE(both.seen().contains(outcome) ? both.seen().at(outcome) : 0, 5) << outcome;
  }
  for (const char* outcome : {"booked started", "booked moved", "booked delayed", "booked ended"}) {
    EXPECT_TRUE(both.seen().contains(outcome)) << outcome;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LongRunTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace bmgpu::core
