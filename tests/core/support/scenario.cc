#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "base/check.h"
#include "core/support/market.h"
#include "core/support/text.h"
#include "core/views.h"

namespace bmgpu::core {
namespace {

// "name word key=value …": what a scenario line says.
class Line {
 public:
  explicit Line(const std::string& text) {
    std::istringstream in(text);
    in >> name_;
    std::string part;
    while (in >> part) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos) {
        word_ = part;
      } else {
        values_[part.substr(0, equals)] = part.substr(equals + 1);
      }
    }
  }

  const std::string& name() const { return name_; }
  std::int64_t word() const { return parse(word_); }
  std::string text(const std::string& key, const std::string& otherwise = "") {
    const auto it = values_.find(key);
    if (it == values_.end()) {
      return otherwise;
    }
    std::string value = it->second;
    std::replace(value.begin(), value.end(), '_', ' ');
    values_.erase(it);
    return value;
  }
  bool has(const std::string& key) const { return values_.contains(key); }
  std::int64_t number(const std::string& key, std::int64_t otherwise = 0) {
    const std::string value = text(key);
    return value.empty() ? otherwise : parse(value);
  }
  std::uint64_t id(const std::string& key, std::uint64_t otherwise = 0) {
    return static_cast<std::uint64_t>(number(key, static_cast<std::int64_t>(otherwise)));
  }
  Instant instant(const std::string& key, Instant otherwise) {
    const std::string value = text(key);
    return value.empty() ? otherwise : kStart + seconds(parse(value));
  }
  void check_all_read() const {
    check(values_.empty(), ("scenario: unknown key in '" + name_ + "'").c_str());
  }

 private:
  static std::int64_t parse(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc() && end == text.data() + text.size(), "scenario: not a number");
    return value;
  }

  std::string name_;
  std::string word_;
  std::map<std::string, std::string> values_;
};

RegisterNode node_command(Line& line) {
  RegisterNode command;
  command.node = NodeId(static_cast<std::uint64_t>(line.word()));
  command.owner = AccountId(line.id("owner", 900));
  command.site = SiteId(line.id("site", 1));
  const std::int64_t gpus = line.number("gpus", 1);
  command.capacity =
      NodeCapacity{line.number("cpu", gpus * 8'000), line.number("memory", gpus * 64'000),
                   line.number("scratch", gpus * 100'000)};
  const GpuClassSpec spec{line.text("model", "NVIDIA A100 80GB PCIe"), line.number("mem", 81'920),
                          Form::Pcie};
  const std::string prefix = line.text("uuid", "n" + std::to_string(line.word()) + "-");
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    command.gpus.push_back({prefix + std::to_string(gpu), spec});
  }
  command.owner_floor = Price(line.number("floor"));
  command.driver = line.text("driver") == "simulated" ? Driver::Simulated : Driver::Real;
  return command;
}

Resources resources(Line& line) {
  return Resources{line.number("gpus", 1), line.text("words"),    line.number("mem"),
                   line.number("cpu"),     line.number("memory"), line.number("scratch")};
}

Duration duration(Line& line) {
  return minutes(line.number("minutes")) + seconds(line.number("seconds"));
}

SetPolicy policy_command(Line& line) {
  MarketPolicy policy;
  policy.base_default_micros_per_gpu_hour = line.number("base", 1'000'000);
  policy.surge_cap_permille = line.number("cap", policy.surge_cap_permille);
  policy.floor_permille = line.number("floor", policy.floor_permille);
  policy.billed_min = seconds(line.number("billed-min", 900));
  policy.waiting_max = seconds(line.number("waiting-max", 24 * 3600));
  policy.turnaround = seconds(line.number("turnaround", 120));
  policy.cancel_fee_permille = line.number("cancel-fee", policy.cancel_fee_permille);
  if (line.text("drivers") == "real") {
    policy.drivers_accepted = Driver::Real;
  }
  return SetPolicy{policy};
}

// "1800..3600,5400..7200": seconds after the start.
std::vector<Interval> intervals(const std::string& text) {
  std::vector<Interval> found;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const std::size_t dots = part.find("..");
    check(dots != std::string::npos, "scenario: not an interval");
    found.push_back({kStart + seconds(std::stol(part.substr(0, dots))),
                     kStart + seconds(std::stol(part.substr(dots + 2)))});
  }
  return found;
}

TimeWish wish(Line& line, Instant now) {
  TimeWish wish;
  if (line.has("start")) {
    wish.start = StartKind::At;
    wish.earliest = line.instant("start", now);
  } else if (line.has("by")) {
    wish.start = StartKind::Cheapest;
    wish.earliest = line.instant("earliest", now);
    wish.deadline = line.instant("by", now);
    wish.allowed = intervals(line.text("between"));
  }
  return wish;
}

SetDemandCurve curve_command(Line& line) {
  SetDemandCurve command;
  command.gpu_class = ClassId(line.id("class", 1));
  command.site = SiteId(line.id("site", 1));
  command.first = slot_of(line.instant("first", kStart));
  std::istringstream in(line.text("gpus"));
  for (std::string part; std::getline(in, part, ',');) {  // "40" or "40x8"
    const std::size_t times = part.find('x');
    const long count = times == std::string::npos ? 1 : std::stol(part.substr(times + 1));
    command.gpus.insert(command.gpus.end(), static_cast<std::size_t>(count), std::stol(part));
  }
  return command;
}

EndReason reason_of(const std::string& name) {
  for (int reason = 0; reason <= static_cast<int>(EndReason::HostUnavailable); ++reason) {
    if (print(static_cast<EndReason>(reason)) == name) {
      return static_cast<EndReason>(reason);
    }
  }
  check(false, "scenario: unknown end reason");
  return EndReason::JobExited;
}

ReportAttemptEnded ended_command(Line& line, Instant now) {
  ReportAttemptEnded command;
  command.lease = LeaseId(line.id("lease"));
  command.token = {Incarnation(line.id("incarnation", 1)), AttemptNumber(line.id("attempt", 1))};
  command.reason = reason_of(line.text("reason", "JobExited"));
  command.at = line.instant("at", now);
  const std::string exit = line.text("exit");
  if (!exit.empty()) {
    command.exit_code = static_cast<std::int32_t>(std::stol(exit));
  }
  command.detail = line.text("detail");
  return command;
}

PlaceOrder order_command(Line& line, Instant now) {
  PlaceOrder command;
  command.tenant = AccountId(line.id("tenant", 1));
  command.resources = resources(line);
  command.duration = duration(line);
  command.price_limit = Price(line.number("limit"));
  command.quote = QuoteId(line.id("quote"));
  command.refuse_if_unavailable = line.text("refuse") == "yes";
  command.without_job = line.text("job") == "none";
  command.wish = wish(line, now);
  return command;
}

std::optional<Command> command_of(Line& line, Instant now) {
  const std::string& name = line.name();
  const NodeId node(name == "ready" || name == "unready" || name == "drain" || name == "resume" ||
                            name == "lost" || name == "remove" || name == "renew"
                        ? static_cast<std::uint64_t>(line.word())
                        : 0);
  if (name == "policy") return policy_command(line);
  if (name == "node") return node_command(line);
  if (name == "ready") return SetNodeReady{node, true};
  if (name == "unready") return SetNodeReady{node, false};
  if (name == "drain") return DrainNode{node};
  if (name == "resume") return ResumeNode{node};
  if (name == "remove") return RemoveNode{node};
  if (name == "renew") return RenewNode{node};
  if (name == "lost") return DeclareNodeLost{node, line.instant("acknowledged", now)};
  if (name == "gpu") {
    return ReportGpu{NodeId(line.id("node")), line.text("uuid"), line.text("ok", "yes") == "yes",
                     line.text("clean", "yes") == "yes"};
  }
  if (name == "running") {
    return ReportAttemptRunning{
        LeaseId(line.id("lease")),
        0,
        {Incarnation(line.id("incarnation", 1)), AttemptNumber(line.id("attempt", 1))},
        line.instant("since", now)};
  }
  if (name == "ended") return ended_command(line, now);
  if (name == "quote") {
    return RequestQuote{AccountId(line.id("tenant", 1)), resources(line), duration(line),
                        Price(line.number("limit")), wish(line, now)};
  }
  if (name == "order") return order_command(line, now);
  if (name == "stop") return StopOrder{AccountId(line.id("tenant")), OrderId(line.id("order"))};
  if (name == "extend") {
    return ExtendLease{AccountId(line.id("tenant", 1)), OrderId(line.id("order")), duration(line),
                       Price(line.number("limit"))};
  }
  if (name == "curve") return curve_command(line);
  if (name == "job") return GiveJob{AccountId(line.id("tenant", 1)), OrderId(line.id("order"))};
  if (name == "tick") return Tick{};
  return std::nullopt;
}

std::string show(const TestMarket& market, Line& line) {
  std::string text;
  const State& state = market.state();
  if (line.text("what") == "offers") {
    for (const OfferView& offer : offers(state, market.now())) {
      text += "  node-" + std::to_string(offer.node.value()) + " " + offer.spec.model + " free " +
              std::to_string(offer.gpus_free) + " of " + std::to_string(offer.gpus_total) +
              " price " + std::to_string(offer.price.count()) + "\n";
    }
    return text;
  }
  for (const OrderId id : live_orders(state, AccountId())) {
    const auto order = find_order(state, id, market.now());
    text += "  order-" + std::to_string(id.value());
    if (order->lease != nullptr) {
      constexpr const char* kStates[] = {"booked", "cancelled", "held",
                                         "leased", "leased",    "leased"};
      text += std::string(" ") + kStates[static_cast<int>(order->lease->state)] +
              ", charge so far " +
              std::to_string(charge_so_far(state, *order->lease, market.now()).count());
    } else {
      text += " waits" + (order->waiting_reason ? " " + print(order->waiting_reason->code) : "");
    }
    text += "\n";
  }
  return text;
}

// Two closed slots that differ in nothing but their time.
bool is_like(const Event& event, const Event& before) {
  const auto* here = std::get_if<SlotClosed>(&event);
  const auto* there = std::get_if<SlotClosed>(&before);
  return here != nullptr && there != nullptr && here->pools == there->pools;
}

std::string run_line(TestMarket& market, const std::string& text) {
  Line line(text);
  std::string answer;
  std::string output;
  if (line.name() == "at") {
    market.at(seconds(line.word()));
    return "";
  }
  if (line.name() == "incarnation") {
    market.set_incarnation(Incarnation(static_cast<std::uint64_t>(line.word())));
    return "";
  }
  if (line.name() == "show") {
    return show(market, line);
  }
  if (line.name() == "settle") {
    market.clear_last();
    market.settle();
    answer = "settled";
  } else {
    const auto command = command_of(line, market.now());
    check(command.has_value(), ("scenario: unknown command '" + line.name() + "'").c_str());
    line.check_all_read();
    answer = print(market.run(*command));
  }
  const std::vector<Event>& events = market.last_events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    output += "  " + print(events[i]) + "\n";
    std::size_t same = i;
    while (same + 1 < events.size() && is_like(events[same + 1], events[i])) {
      ++same;
    }
    if (same > i + 1) {  // hours in which nothing happens
      output += "  and " + std::to_string(same - i) + " slots like it\n";
      i = same;
    }
  }
  return output + "= " + answer + "\n";
}

}  // namespace

std::string run_scenario(const std::string& text) {
  TestMarket market;
  std::istringstream in(text);
  std::string output;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') {
      output += line + "\n";
    } else if (line[0] == '>') {
      output += line + "\n" + run_line(market, line.substr(1));
    }
  }
  return output;
}

}  // namespace bmgpu::core
