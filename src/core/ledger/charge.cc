#include "core/ledger/charge.h"

#include <algorithm>

#include "base/check.h"
#include "base/wide.h"
#include "core/market/pricing.h"

namespace bmgpu::core {
namespace {

bool is_free_of_charge(EndReason reason) {
  return reason == EndReason::StartFailed || reason == EndReason::DeviceCheckFailed ||
         reason == EndReason::PreparationTimeout;
}
bool is_hosts_failure(EndReason reason) {
  return reason == EndReason::NodeLost || reason == EndReason::GpuLost ||
         reason == EndReason::DeviceCheckFailed || reason == EndReason::PreparationTimeout;
}

// Ended before anything was given to it; what a cancelled one costs is settled elsewhere.
bool is_unstarted(EndReason reason) {
  return reason == EndReason::Cancelled || reason == EndReason::HostUnavailable;
}
Money share_of_quote(const Lease& lease) {
  const Wide share = Wide{lease.quoted.count()} * lease.cancel_fee_permille;
  return Money(static_cast<std::int64_t>((share + 999) / 1000));
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
  const bool was_held = lease.started < lease.preparing_since;
  if (is_unstarted(reason)) {
    return Bill{};
  }
  const bool is_hosts = is_hosts_failure(reason);
  const Money least = is_hosts ? Money() : share_of_quote(lease);
  if (!lease.running_since || (is_free_of_charge(reason) && !was_held)) {
    return Bill{std::nullopt, Duration(), least, least};
  }
  const Instant window_end = priced_until(lease.start, lease.end, lease.billed_min);
  Instant from = *lease.running_since;
  Instant until = std::clamp(stopped, from, std::max(from, lease.end));
  if (!is_hosts) {
    // The least that is billed may reach past the stop, or before the start of metering, but not
    // outside the window that was quoted, nor before the items were there.
    until = std::min(std::max(until, from + lease.billed_min), window_end);
    from = std::max(std::min(from, until - lease.billed_min), lease.started);
  }
  const Money exact =
      std::min(charge_between(lease.slot_prices, lease.start, from, until), lease.quoted);
  const Money charged = std::max(exact, least);
  return Bill{from, until - from, charged, charged - exact};
}

}  // namespace bmgpu::core
