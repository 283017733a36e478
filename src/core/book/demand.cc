#include "core/book/demand.h"

namespace bmgpu::core {

PoolDemand::PoolDemand(const State& state, const PoolKey& key, const PoolRecord& pool, Instant now,
                       OwnDemand own)
    : now_(slot_of(now)),
      waiting_until_(slot_of(now + state.policy.waiting_max) + SlotNumber(1)),
      leased_now_(pool.demand_leased - own.leased),
      waiting_(pool.demand_waiting - own.waiting) {
  const auto calendar = state.calendars.find(key);
  calendar_ = calendar != state.calendars.end() ? &calendar->second : nullptr;
  const auto curve = state.curves.find(key);
  curve_ = curve != state.curves.end() ? &curve->second : nullptr;
  const auto week = state.week_demand.find(key);
  week_ = week != state.week_demand.end() ? &week->second : nullptr;
}

std::optional<std::int64_t> PoolDemand::expected(SlotNumber slot) const {
  if (curve_ != nullptr && slot >= curve_->first) {
    const auto index = static_cast<std::size_t>((slot - curve_->first).count());
    if (index < curve_->gpus.size()) {
      return curve_->gpus[index];
    }
  }
  if (week_ != nullptr) {
    const std::int64_t noted =
        (*week_)[static_cast<std::size_t>(slot.count() % Limits::kClosedSlots)];
    return noted >= 0 ? std::optional(noted) : std::nullopt;
  }
  return std::nullopt;
}

SlotDemand PoolDemand::at(SlotNumber slot) const {
  SlotDemand demand;
  demand.waiting = slot < waiting_until_ ? waiting_ : 0;
  const std::int64_t leased = calendar_ != nullptr ? calendar_->leased(slot) : 0;
  const std::int64_t booked = calendar_ != nullptr ? calendar_->booked(slot) : 0;
  if (const auto known = expected(slot)) {
    demand.taken = slot <= now_ ? std::max(leased, leased_now_ + booked) : leased;
    demand.expected = *known;
  } else {
    demand.taken = leased_now_ + booked;
  }
  return demand;
}

}  // namespace bmgpu::core
