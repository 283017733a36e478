#include "base/money.h"

namespace bmgpu {

Money charge(Price price, Duration gpu_time) {
  check(price.count() >= 0, "charge: the price is negative");
  check(gpu_time.count() >= 0, "charge: the time is negative");
  const __int128 product = static_cast<__int128>(price.count()) * gpu_time.count();
  const __int128 micros = (product + kSlot.count() - 1) / kSlot.count();
  check(micros <= Money::max().count(), "charge: overflows");
  return Money(static_cast<std::int64_t>(micros));
}

}  // namespace bmgpu
