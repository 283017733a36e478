// Arbitrary core events from a seed, extreme values included. Aggregates are written in full, so
// that a field which core adds does not compile here until it is drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "core/events.h"

namespace bmgpu::store {

class EventMaker {
 public:
  static constexpr std::size_t kKinds = std::variant_size_v<core::Event>;

  explicit EventMaker(std::uint64_t seed) : prng_(seed) {}

  core::Event any() { return of_kind(prng_.below(kKinds)); }
  core::Event of_kind(std::size_t index);  // the alternative of core::Event
  std::vector<core::Event> list(std::size_t count);

  std::int64_t number();
  std::string text();
  Prng& prng() { return prng_; }

 private:
  template <typename T>
  T id() {
    return T(static_cast<std::uint64_t>(number()));
  }
  template <typename T>
  T quantity() {
    return T(number());
  }
  Instant instant() { return Instant(number()); }
  template <typename E>
  E one_of(E last) {
    return static_cast<E>(prng_.below(static_cast<std::uint64_t>(last) + 1));
  }
  bool flag() { return prng_.chance(1, 2); }
  template <typename Make>
  auto some(Make make) {
    std::vector<decltype(make())> values;
    for (std::uint64_t left = prng_.below(4); left > 0; --left) {
      values.push_back(make());
    }
    return values;
  }
  template <typename Make>
  auto maybe(Make make) {
    return flag() ? std::optional(make()) : std::nullopt;
  }
  std::vector<Price> prices();
  std::optional<Instant> maybe_instant();
  std::optional<std::int32_t> exit_code();
  core::EndReason end_reason() { return one_of(core::EndReason::OutOfMemory); }
  core::Driver driver() { return one_of(core::Driver::Simulated); }
  core::RestartPolicy restart() { return one_of(core::RestartPolicy::Never); }
  core::Resources resources();
  core::MarketPolicy policy();
  core::RankPlacement rank();
  core::Lease lease();
  core::Order order();
  core::Quote quote();
  core::TimeWish wish();
  core::NodeRegistered node_registered();
  core::LeaseEnded lease_ended();
  core::Event first_half(std::size_t index);
  core::Event of_the_book(std::size_t index);

  Prng prng_;
};

}  // namespace bmgpu::store
