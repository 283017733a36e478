#include "sim/chaos/world.h"

#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

constexpr std::uint64_t kNodes = 10;

DiskHonesty honesty_of(Sabotage sabotage) {
  return sabotage == Sabotage::StoreAcknowledgesEarly ? DiskHonesty::AcknowledgesEarly
                                                      : DiskHonesty::Durable;
}

}  // namespace

World::World(std::uint64_t seed, const WorldOptions& options)
    : sabotage(options.sabotage),
      random(seed),
      rates(draw_fault_rates(random)),
      trace(options.trace_lines),
      disk(honesty_of(options.sabotage)) {
  for (std::uint64_t n = 1; n <= kNodes; ++n) {
    const NodeId id(n);
    links[id] = std::make_unique<Link>(timeline, random.next());
    nodes[id] = std::make_unique<SimNode>(*this, id);
  }
}

World::~World() = default;

void World::start_market() {
  dead_market.reset();
  note("market starts");
  market = std::make_unique<MarketProcess>(*this, ++market_life);
  market->start();
}

void World::crash_market(std::uint64_t digest) {
  durable_digest = digest;
  ++market_life;
  market->nodes().close_all();
  dead_market = std::move(market);
  timeline.after(milliseconds(random.between(100, 15'000)), [this] { start_market(); });
}

}  // namespace bmgpu::sim
