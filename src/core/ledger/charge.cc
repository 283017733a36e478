#include "core/ledger/charge.h"

#include <algorithm>

#include "base/check.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

bool is_free_of_charge(EndReason reason) {
  return reason == EndReason::StartFailed || reason == EndReason::DeviceCheckFailed ||
         reason == EndReason::PreparationTimeout;
}
bool is_hosts_failure(EndReason reason) {
  return reason == EndReason::NodeLost || reason == EndReason::GpuLost;
}

}  // namespace

Money charge_between(const std::vector<Price>& slot_prices, Instant lease_start, Instant from,
                     Instant until) {
  Money sum;
  const SlotNumber first = slot_of(lease_start);
  while (from < until) {
    const auto index = static_cast<std::size_t>((slot_of(from) - first).count());
    check(index < slot_prices.size(), "charge_between: a slot without a price");
    const Instant part_end = std::min(until, slot_start(slot_of(from)) + kSlot);
    sum += charge(slot_prices[index], part_end - from);
    from = part_end;
  }
  return sum;
}

Bill bill(const Lease& lease, EndReason reason, Instant stopped) {
  if (!lease.running_since || is_free_of_charge(reason)) {
    return Bill{};
  }
  const Instant window_end = priced_until(lease.start, lease.end, lease.billed_min);
  Instant from = *lease.running_since;
  Instant until = std::clamp(stopped, from, std::max(from, lease.end));
  if (!is_hosts_failure(reason)) {
    // The least that is billed may reach past the stop, or before the start of metering, but not
    // outside the window that was quoted.
    until = std::min(std::max(until, from + lease.billed_min), window_end);
    from = std::max(std::min(from, until - lease.billed_min), lease.start);
  }
  const Money exact = charge_between(lease.slot_prices, lease.start, from, until);
  return Bill{from, until - from, std::min(exact, lease.quoted)};
}

}  // namespace bmgpu::core
