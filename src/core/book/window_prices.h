// What a lease would cost in one pool by its start, for every slot of the book at once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/book/demand.h"
#include "core/market/pricing.h"

namespace bmgpu::core {

// Starts are slot borders. A lease touches at most as many slots with a price of their own as there
// are weights; later ones cost the floor, whatever the demand is. So a table of (slot, place in
// the lease) holds every price that any start needs; the total of a start is a diagonal sum.
// Slots with the same demand share their line.
class WindowPrices {
 public:
  // For starts in [first, first + starts) and leases priced for `length`.
  // REQUIRES: the pool has supply.
  WindowPrices(const State& state, const PoolKey& key, const PoolRecord& pool, std::int64_t gpus,
               Price owner_floor, Instant now, SlotNumber first, std::int64_t starts,
               Duration length);

  Money total(SlotNumber start) const;
  // The lowest price of one GPU in any slot of it.
  Price lowest(SlotNumber start) const;

 private:
  struct Line {
    std::size_t sums = 0;   // in sums_: of all GPUs, by place in the lease
    std::size_t first = 0;  // in firsts_: of the first GPU
  };
  std::size_t line_of(std::int64_t demand, const SlotPricer& pricer, Multiples& multiples);
  void add_prices(const SlotPricer& pricer, Fixed multiple, std::vector<Price>& to) const;
  Line add_soon(const PoolRecord& pool, const SlotDemand& demand, const SlotPricer& pricer,
                Multiples& multiples);
  Line add_later(const SlotDemand& demand, const SlotPricer& pricer, Multiples& multiples);
  Price price_at(SlotNumber start, std::int64_t index) const;

  std::int64_t gpus_;
  SlotNumber first_;
  std::int64_t whole_ = 0;   // slots that a lease fills
  Duration rest_;            // of the last slot
  std::int64_t places_ = 0;  // with prices of their own
  Price late_;               // of one GPU, after them
  std::vector<Line> lines_;  // by slot
  std::vector<Price> sums_;
  std::vector<Price> firsts_;  // prices of one GPU at some demand
  std::int64_t demand_min_ = 0;
  std::vector<std::int32_t> line_of_demand_;  // in firsts_, −1: not made yet
  SlotDemand last_;
  Line last_line_;
  bool has_last_ = false;
};

}  // namespace bmgpu::core
