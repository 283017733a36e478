// The forward book at the size of a large market: decisions of a fixed mix, cheapest-window quotes
// over 14 days, and memory, in core alone: one thread, no store, no network. Prints one JSON object
// on standard output.
//
//   bench_book [--json] [decisions, default 20000]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/prng.h"
#include "core/core.h"

namespace {

namespace core = bmgpu::core;
using bmgpu::AccountId;
using bmgpu::Instant;
using bmgpu::NodeId;

constexpr std::int64_t kNodes = 10'000;
constexpr std::int64_t kGpusPerNode = 8;
constexpr std::int64_t kLeases = 100'000;
constexpr std::int64_t kBookSlots = core::Limits::kBookSlots;

class Market {
 public:
  Market() {
    for (std::int64_t node = 1; node <= kNodes; ++node) {
      core::RegisterNode command;
      command.node = NodeId(static_cast<std::uint64_t>(node));
      command.owner = AccountId(1'000'000);
      command.site = bmgpu::SiteId(1);
      command.capacity = {128'000, 1'048'576, 4'194'304};
      for (std::int64_t gpu = 0; gpu < kGpusPerNode; ++gpu) {
        command.gpus.push_back({"GPU-" + std::to_string(node * kGpusPerNode + gpu),
                                {"NVIDIA A100 80GB PCIe", 81'920, core::Form::Pcie}});
      }
      execute(command);
      execute(core::SetNodeReady{command.node, true});
    }
    execute(core::Tick{});
  }

  core::Answer execute(const core::Command& command) {
    now_ = now_ + bmgpu::milliseconds(1);
    core::Decision decision =
        core::decide(state_, core::Stamp{now_, bmgpu::Incarnation(1)}, command);
    for (const core::Event& event : decision.events) {
      core::apply(state_, event);
    }
    return std::move(decision.answer);
  }

  // A day curve: between 20,000 and 70,000 GPUs wanted.
  void forecast() {
    core::SetDemandCurve command;
    command.gpu_class = state_.classes.begin()->first;
    command.site = bmgpu::SiteId(1);
    command.first = bmgpu::slot_of(now_);
    for (std::int64_t slot = 0; slot < kBookSlots; ++slot) {
      const std::int64_t of_day = slot % 96;
      command.gpus.push_back(20'000 + std::min(of_day, 96 - of_day) * 1'000 + slot % 7 * 31);
    }
    execute(command);
  }

  core::PlaceOrder order(bmgpu::Prng& random) {
    constexpr std::int64_t kGpus[] = {1, 1, 1, 1, 2, 2, 4, 8};
    core::PlaceOrder command;
    command.tenant = AccountId(1 + random.below(1'000));
    command.resources.gpus = kGpus[random.below(8)];
    command.duration = bmgpu::minutes(15) * static_cast<std::int64_t>(1 + random.below(32));
    command.refuse_if_unavailable = true;
    return command;
  }
  core::PlaceOrder booking(bmgpu::Prng& random) {
    core::PlaceOrder command = order(random);
    command.wish.start = core::StartKind::At;
    command.wish.earliest =
        now_ + bmgpu::minutes(15) * static_cast<std::int64_t>(1 + random.below(1'300));
    return command;
  }
  core::TimeWish window(std::int64_t hours) const {
    return {core::StartKind::Cheapest, now_, now_ + bmgpu::hours(hours), {}};
  }

  Instant now() const { return now_; }
  std::size_t leases() const { return state_.leases.size(); }
  Instant book_end() const {
    return bmgpu::slot_start(state_.open_slot + bmgpu::SlotNumber(kBookSlots));
  }

 private:
  core::State state_;
  Instant now_{1'700'000'100'000};
};

struct Times {
  double p50_us = 0;
  double p99_us = 0;
};
Times times_of(std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  return Times{us[us.size() / 2], us[us.size() * 99 / 100]};
}

// Of this thread's CPU time: what others do on the machine does not count.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double took_us(Market& market, const core::Command& command) {
  const double start = cpu_us();
  market.execute(command);
  return cpu_us() - start;
}

// Resident now, in MiB.
double resident_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) {
      return std::strtod(line.c_str() + 6, nullptr) / 1024;
    }
  }
  return 0;
}

void fill(Market& market, bmgpu::Prng& random) {
  while (market.leases() < kLeases) {
    market.execute(random.below(4) == 0 ? market.order(random) : market.booking(random));
  }
}

// Start-now orders, bookings at a time, and windows of a day: one half, a quarter, a quarter.
Times time_decisions(Market& market, bmgpu::Prng& random, long count) {
  std::vector<double> us;
  for (long i = 0; i < count; ++i) {
    core::PlaceOrder command = i % 4 == 1 ? market.booking(random) : market.order(random);
    if (i % 4 == 3) {
      command.wish = market.window(24);
    }
    us.push_back(took_us(market, command));
  }
  return times_of(us);
}

Times time_quotes(Market& market, bmgpu::Prng& random, long count) {
  std::vector<double> us;
  for (long i = 0; i < count; ++i) {
    const core::PlaceOrder order = market.order(random);
    core::TimeWish wish = market.window(0);
    wish.deadline = market.book_end();
    us.push_back(took_us(market, core::RequestQuote{order.tenant, order.resources, order.duration,
                                                    bmgpu::Price(), wish}));
  }
  return times_of(us);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--json") {  // what it prints anyway
    --argc;
    ++argv;
  }
  const long decisions = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 20'000;
  if (argc > 2 || decisions < 100 || decisions > 1'000'000) {
    std::fprintf(stderr, "usage: bench_book [--json] [decisions, 100 to 1000000]\n");
    return 2;
  }
  bmgpu::Prng random(42);
  Market market;
  market.forecast();
  fill(market, random);
  const double rss_mb = resident_mb();
  const std::size_t live = market.leases();
  const Times quotes = time_quotes(market, random, decisions / 10);
  const Times mixed = time_decisions(market, random, decisions);
  std::printf(
      "{\"decision_p50_us\":%.1f,\"decision_p99_us\":%.1f,\"window_quote_p50_us\":%.1f,"
      "\"window_quote_p99_us\":%.1f,\"rss_mb\":%.0f,\"live_leases\":%zu,\"nodes\":%lld,"
      "\"gpus\":%lld,\"classes\":1,\"slots\":%lld,\"decisions\":%ld,\"quotes\":%ld,\"threads\":1,"
      "\"cpus\":%u,\"counts\":\"CPU time of decide+apply; decisions: half start now, a quarter at "
      "a time, a "
      "quarter cheapest of a day; quotes: cheapest of 14 days; 1-8 GPUs, 15 min-8 h\"}\n",
      mixed.p50_us, mixed.p99_us, quotes.p50_us, quotes.p99_us, rss_mb, live,
      static_cast<long long>(kNodes), static_cast<long long>(kNodes * kGpusPerNode),
      static_cast<long long>(kBookSlots), decisions, decisions / 10,
      std::thread::hardware_concurrency());
  return 0;
}
