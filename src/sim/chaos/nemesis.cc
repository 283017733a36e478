#include "sim/chaos/nemesis.h"

#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {

SimNode& Nemesis::some_node() {
  return *world_.nodes.at(NodeId(1 + random_.below(world_.nodes.size())));
}

Link& Nemesis::some_link() {
  return *world_.links.at(NodeId(1 + random_.below(world_.links.size())));
}

void Nemesis::again_and_again(Duration mean, std::function<void()> fault) {
  if (mean == Duration()) {
    return;
  }
  const Duration wait = milliseconds(random_.between(1, 2 * mean.count()));
  world_.timeline.after(wait, [this, mean, fault = std::move(fault)] {
    if (world_.faults) {
      fault();
      again_and_again(mean, fault);
    }
  });
}

void Nemesis::crash_market() {
  if (!world_.market) {
    return;
  }
  const std::uint64_t draw = random_.below(100);
  std::uint64_t share = world_.rates.crash_before_store;
  if (draw < share) {
    world_.next_death = TurnDeath::BeforeStore;
  } else if (draw < (share += world_.rates.crash_before_send)) {
    world_.next_death = TurnDeath::BeforeSend;
  } else if (draw < share + world_.rates.crash_while_sending) {
    world_.next_death = TurnDeath::WhileSending;
  } else {
    world_.note("market dies");
    world_.crash_market(core::digest(world_.market->state()));
  }
}

void Nemesis::cut(Link& link, End toward, Duration length) {
  link.cut(toward);
  world_.timeline.after(length, [&link, toward] { link.heal(toward); });
}

void Nemesis::start() {
  const FaultRates& rates = world_.rates;
  for (const auto& [id, link] : world_.links) {
    link->set_latency({milliseconds(20), rates.slow_permille, milliseconds(3000)});
  }
  again_and_again(rates.market_crash, [this] { crash_market(); });
  again_and_again(rates.disk_full, [this] {
    world_.disk.set_full(true);
    world_.timeline.after(seconds(random_.between(1, 30)), [this] { world_.disk.set_full(false); });
  });
  again_and_again(rates.market_pause, [this] {
    if (world_.market) {
      world_.note("market pauses");
      world_.market->pause(world_.now() + milliseconds(random_.between(500, 5000)));
    }
  });
  again_and_again(rates.node_crash,
                  [this] { some_node().crash(seconds(random_.between(2, 120))); });
  again_and_again(rates.agent_crash, [this] {
    SimNode& node = some_node();
    if (node.is_up()) {
      node.agent().crash(milliseconds(random_.between(100, 20'000)));
    }
  });
  again_and_again(rates.shim_crash, [this] { some_node().crash_some_shim(); });
  again_and_again(rates.guard_crash, [this] {
    SimNode& node = some_node();
    if (node.is_up()) {
      node.guard().stop();
      world_.timeline.after(milliseconds(random_.between(50, 4000)),
                            [&node, boot = node.boot_number()] {
                              if (node.is_up() && node.boot_number() == boot) {
                                node.guard().start();
                              }
                            });
    }
  });
  again_and_again(rates.gpu_failure, [this] {
    SimNode& node = some_node();
    node.fail_gpu();
    world_.timeline.after(seconds(random_.between(5, 300)), [&node] { node.repair_gpus(); });
  });
  again_and_again(rates.engine_hang, [this] {
    SimNode& node = some_node();
    node.set_engine(false);
    world_.timeline.after(seconds(random_.between(2, 90)), [&node] { node.set_engine(true); });
  });
  again_and_again(rates.one_way_cut, [this] {
    cut(some_link(), random_.chance(1, 2) ? End::Market : End::Node,
        milliseconds(random_.between(200, 30'000)));
  });
  again_and_again(rates.full_cut, [this] {
    Link& link = some_link();
    const Duration length = milliseconds(random_.between(200, 120'000));
    cut(link, End::Market, length);
    cut(link, End::Node, length);
  });
  again_and_again(rates.broken_streams, [this] { some_link().break_streams(); });
  again_and_again(rates.gpu_change, [this] {
    SimNode& node = some_node();
    if (node.is_up()) {
      node.crash(seconds(random_.between(5, 60)));
      node.change_gpus();
    }
  });
}

void Nemesis::end() {
  world_.faults = false;
  world_.next_death.reset();
  world_.disk.set_full(false);
  for (const auto& [id, link] : world_.links) {
    link->set_latency({milliseconds(20), 0, Duration()});
    link->heal(End::Market);
    link->heal(End::Node);
  }
  for (const auto& [id, node] : world_.nodes) {
    node->set_engine(true);
    node->repair_gpus();
  }
}

}  // namespace bmgpu::sim
