#include "sim/chaos/faults.h"

namespace bmgpu::sim {
namespace {

// One kind of fault in three is absent from a seed; the others vary by a factor of five.
Duration draw(Prng& random, Duration mean) {
  if (random.chance(1, 3)) {
    return Duration();
  }
  return milliseconds(mean.count() * random.between(2, 10) / 5);
}

}  // namespace

FaultRates draw_fault_rates(Prng& random) {
  FaultRates rates;
  rates.market_crash = draw(random, minutes(2));
  rates.disk_full = draw(random, minutes(6));
  rates.market_pause = draw(random, minutes(6));
  rates.node_crash = draw(random, minutes(3));
  rates.agent_crash = draw(random, seconds(60));
  rates.shim_crash = draw(random, seconds(40));
  rates.guard_crash = draw(random, minutes(3));
  rates.gpu_failure = draw(random, minutes(3));
  rates.engine_hang = draw(random, minutes(4));
  rates.one_way_cut = draw(random, seconds(90));
  rates.full_cut = draw(random, seconds(90));
  rates.broken_streams = draw(random, seconds(45));
  rates.gpu_change = draw(random, minutes(8));
  rates.slow_permille = static_cast<std::uint64_t>(random.between(0, 30));
  rates.request_loss_permille = static_cast<std::uint64_t>(random.between(0, 150));
  rates.request_repeat_permille = static_cast<std::uint64_t>(random.between(0, 150));
  rates.crash_before_store = 30;
  rates.crash_before_send = 30;
  rates.crash_while_sending = 20;
  return rates;
}

}  // namespace bmgpu::sim
