// Order submissions per second in the market's core alone: decide() and apply(), one thread, no
// store, no network. Prints one JSON object on standard output.
//
//   bench_core [--json] [seconds per figure, default 2]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "core/core.h"

namespace {

using namespace std::chrono_literals;
namespace core = bmgpu::core;
using bmgpu::AccountId;
using bmgpu::Instant;
using bmgpu::NodeId;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNodes = 10'000;
constexpr std::int64_t kGpusPerNode = 8;
constexpr std::int64_t kTenants = 1'000;
constexpr const char* kModels[] = {"NVIDIA A100 80GB PCIe", "NVIDIA A40", "NVIDIA H200",
                                   "NVIDIA GeForce RTX 4090"};
constexpr const char* kWords[] = {"a100", "a40", "h200", "rtx 4090"};

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
                                {kModels[node % 4], 81'920, core::Form::Pcie}});
      }
      execute(command);
      execute(core::SetNodeReady{command.node, true});
    }
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

  core::PlaceOrder next_order() {
    ++orders_;
    core::PlaceOrder order;
    order.tenant = AccountId(1 + orders_ % kTenants);
    order.resources.gpus = 1 + static_cast<std::int64_t>(orders_ % 2);
    order.resources.gpu_words = kWords[(orders_ / 2) % 4];
    order.duration = bmgpu::hours(1 + static_cast<std::int64_t>(orders_ % 4));
    return order;
  }

  bool is_full() const { return state_.leases.size() + 5'000 > kNodes * kGpusPerNode * 2 / 3; }
  std::size_t waiting() const { return state_.waiting.size(); }

  void empty() {
    while (!state_.leases.empty()) {
      const core::Lease lease = state_.leases.begin()->second;
      const bmgpu::FencingToken token{lease.attempts[0].incarnation, lease.attempts[0].number};
      const core::RankPlacement& rank = lease.allocations.back().ranks[0];
      execute(
          core::ReportAttemptEnded{lease.id, 0, token, core::EndReason::JobExited, now_, 0, ""});
      for (const core::Item& item : rank.items) {
        execute(core::ReportGpu{rank.node, uuid_of(rank.node, item.gpu), true, true});
      }
    }
    while (!state_.waiting.empty()) {
      execute(core::StopOrder{AccountId(), state_.waiting.begin()->first});
    }
  }

 private:
  std::string uuid_of(NodeId node, bmgpu::GpuId id) const {
    for (const core::GpuRecord& gpu : state_.nodes.at(node).gpus) {
      if (gpu.id == id) {
        return gpu.uuid;
      }
    }
    bmgpu::check(false, "bench: no such GPU");
    return {};
  }

  core::State state_;
  Instant now_{1'700'000'000'000};
  std::uint64_t orders_ = 0;
};

struct Figure {
  double per_s = 0;      // of wall time
  double per_cpu_s = 0;  // of this process's CPU time: what an idle machine would reach
};

// Submissions per second over `budget` of submitting; what makes room in between is not counted.
Figure orders_per_s(Market& market, Clock::duration budget, const std::function<bool()>& is_done,
                    const std::function<void()>& make_room) {
  Clock::duration spent{};
  std::clock_t cpu = 0;
  double count = 0;
  while (spent < budget) {
    const Clock::time_point start = Clock::now();
    const std::clock_t cpu_start = std::clock();
    while (!is_done()) {
      market.execute(market.next_order());
      ++count;
    }
    cpu += std::clock() - cpu_start;
    spent += Clock::now() - start;
    make_room();
  }
  return Figure{count / std::chrono::duration<double>(spent).count(),
                count * CLOCKS_PER_SEC / static_cast<double>(cpu)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--json") {  // what it prints anyway
    --argc;
    ++argv;
  }
  const long seconds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2;
  if (argc > 2 || seconds < 1 || seconds > 600) {
    std::fprintf(stderr, "usage: bench_core [--json] [seconds per figure, 1 to 600]\n");
    return 2;
  }
  const auto budget = std::chrono::seconds(seconds);
  Market market;
  const Figure started = orders_per_s(
      market, budget, [&] { return market.is_full(); }, [&] { market.empty(); });
  while (!market.is_full() || market.waiting() < 10'000) {
    market.execute(market.next_order());
  }
  const Figure queued = orders_per_s(
      market, budget, [&] { return market.waiting() >= 200'000; },
      [&] {
        market.empty();
        while (market.waiting() < 10'000) {
          market.execute(market.next_order());
        }
      });
  std::printf(
      "{\"core_per_s\":%.0f,\"core_per_cpu_s\":%.0f,\"core_queued_per_s\":%.0f,"
      "\"core_queued_per_cpu_s\":%.0f,\"nodes\":%lld,\"gpus\":%lld,"
      "\"classes\":4,\"gpus_per_order\":\"1-2\",\"hours_per_order\":\"1-4\",\"threads\":1,"
      "\"cpus\":%u,\"seconds_per_figure\":%ld,\"counts\":\"decide+apply of PlaceOrder; "
      "core_per_s starts at once, core_queued_per_s waits in a full market\"}\n",
      started.per_s, started.per_cpu_s, queued.per_s, queued.per_cpu_s,
      static_cast<long long>(kNodes), static_cast<long long>(kNodes * kGpusPerNode),
      std::thread::hardware_concurrency(), seconds);
  return 0;
}
