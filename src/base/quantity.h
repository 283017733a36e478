// Quantity<Tag>: a distinct 64-bit signed integer. Two quantities mix only where an operator says
// so; overflow is a check(), never a wrap.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace bmgpu {

template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t value) : value_(value) {}

  // The bare number, in the unit that the alias documents.
  constexpr std::int64_t count() const { return value_; }

  static constexpr Quantity max() { return Quantity(std::numeric_limits<std::int64_t>::max()); }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    std::int64_t sum = 0;
    check(!__builtin_add_overflow(a.value_, b.value_, &sum), "quantity: addition overflows");
    return Quantity(sum);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    std::int64_t difference = 0;
    check(!__builtin_sub_overflow(a.value_, b.value_, &difference),
          "quantity: subtraction overflows");
    return Quantity(difference);
  }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) {
    std::int64_t product = 0;
    check(!__builtin_mul_overflow(a.value_, n, &product), "quantity: product overflows");
    return Quantity(product);
  }
  Quantity& operator+=(Quantity b) { return *this = *this + b; }
  Quantity& operator-=(Quantity b) { return *this = *this - b; }

 private:
  std::int64_t value_ = 0;
};

}  // namespace bmgpu
