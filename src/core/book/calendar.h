// Which GPUs of one class and site are taken in which slot, for the 14 days of the book.
//
// A row is one node's GPUs of the class, one bit a GPU ("lane"), one to eight bytes a row. The bits
// lie slot by slot, so that a window over all nodes is an OR over contiguous words: 10,000 nodes of
// 8 GPUs are 1,250 words a slot and 13.4 MB in all. A bit is set if anything holds the GPU in any
// part of the slot; who, and until which second, is in NodeRecord::stays. Slots are a ring: the
// oldest one's bits become the newest one's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.h"

namespace bmgpu::core {

class Calendar {
 public:
  using Row = std::uint32_t;
  using Words = std::vector<std::uint64_t>;

  explicit Calendar(SlotNumber first = SlotNumber());

  // The slots that it knows: [first, end). advance() moves both; new slots are empty.
  SlotNumber first() const { return first_; }
  SlotNumber end() const { return first_ + SlotNumber(Limits::kBookSlots); }
  void advance(SlotNumber first);  // REQUIRES: not backwards

  // A row with `lanes` GPUs (1 to 64), none of them taken or offered.
  Row add_row(NodeId node, std::int64_t lanes, Price owner_floor);
  void remove_row(Row row);
  // GPUs that may be booked at all: healthy, on a node that takes leases.
  void offer(Row row, std::uint64_t lanes);

  // Of slots that it does not know nothing is kept: they are free.
  void take(Row row, SlotNumber from, SlotNumber until, std::uint64_t lanes);
  void release(Row row, SlotNumber from, SlotNumber until, std::uint64_t lanes);
  // GPUs wanted by leases in each slot; `booked`: those of leases that have not started.
  void count(SlotNumber from, SlotNumber until, std::int64_t leased, std::int64_t booked);

  std::uint64_t taken(Row row, SlotNumber slot) const;
  std::uint64_t offered(Row row) const { return get(offered_, row); }
  std::int64_t leased(SlotNumber slot) const;  // 0 where it knows nothing
  std::int64_t booked(SlotNumber slot) const;

  // Rows, also removed ones: these have no node and offer nothing.
  Row rows() const { return static_cast<Row>(nodes_.size()); }
  NodeId node(Row row) const { return nodes_[row]; }
  Price owner_floor(Row row) const { return floors_[row]; }
  // The lowest floor of an offered GPU; absent: none is offered.
  std::optional<Price> lowest_floor() const;

  // Fills `free` with the offered GPUs that are free in all of [from, until). If no row has `gpus`
  // of them, returns the first slot until which that shows: no window that holds [from, that slot]
  // can do.
  std::optional<SlotNumber> find_free(SlotNumber from, SlotNumber until, std::int64_t gpus,
                                      Words& free) const;
  std::uint64_t get(const Words& words, Row row) const {
    const std::size_t bit = std::size_t{row} * lanes_per_row_;
    return words[bit / 64] >> (bit % 64) & row_mask();
  }

  // Equal in what it says of each node. Rows may have other numbers.
  bool says_the_same(const Calendar& other) const;

 private:
  std::uint64_t row_mask() const {
    return lanes_per_row_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes_per_row_) - 1;
  }
  std::size_t plane(SlotNumber slot) const;  // where its words begin
  bool knows(SlotNumber slot) const { return slot >= first_ && slot < end(); }
  void reshape(std::size_t lanes_per_row, std::size_t words);
  bool has_row_with(const Words& free, std::int64_t gpus) const;

  SlotNumber first_;
  std::size_t lanes_per_row_ = 8;   // 8, 16, 32 or 64
  std::size_t words_per_slot_ = 0;  // a power of two, grows as rows are added
  Words taken_;                     // by slot of the ring, then by row
  Words offered_;
  std::vector<NodeId> nodes_;  // by row
  std::vector<Price> floors_;
  std::vector<Row> spare_rows_;
  std::vector<std::int32_t> leased_;  // by slot of the ring
  std::vector<std::int32_t> booked_;
};

}  // namespace bmgpu::core
