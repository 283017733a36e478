#include "base/money.h"

#include "base/wide.h"

namespace bmgpu {

__extension__ using Int128 = __int128;

Money charge(Price price, Duration gpu_time) {
  check(price.count() >= 0, "charge: the price is negative");
  check(gpu_time.count() >= 0, "charge: the time is negative");
  const Int128 product = static_cast<Int128>(price.count()) * gpu_time.count();
  const Int128 micros = (product + kSlot.count() - 1) / kSlot.count();
  check(micros <= Money::max().count(), "charge: overflows");
  return Money(static_cast<std::int64_t>(micros));
}

}  // namespace bmgpu
