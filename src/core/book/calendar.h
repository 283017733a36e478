// Which GPUs of one class and site are taken in which slot, for the 14 days of the book.
//
// A row is one node's GPUs of the class, one bit a GPU ("lane"), one to eight bytes a row. The bits
// lie slot by slot, so that a window over all nodes is an OR over contiguous words: 10,000 nodes of
// 8 GPUs are 1,250 words a slot and 13.4 MB in all. A bit is set if anything holds the GPU in any
// part of the slot; who, and until which second, is in NodeRecord::stays. Slots are a ring: the
// oldest one's bits become the newest one's.
#pragma once

#include <bit>
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
  static constexpr std::int64_t kLanesMax = 64;

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
  // Removes from `free` what is taken in the slot.
  void take_out(SlotNumber slot, Words& free) const;
  // visit(row) for each row with `least` or more bits in `free` and at most `most` in `whole`.
  // `most` is read again as it goes on.
  template <typename Visit>
  void for_each_row(const Words& free, const Words& whole, std::int64_t least,
                    const std::int64_t& most, Visit visit) const {
    if (least > static_cast<std::int64_t>(lanes_per_row_)) {
      return;
    }
    const std::size_t rows_per_word = 64 / lanes_per_row_;
    for (std::size_t word = 0; word < free.size(); ++word) {
      std::uint64_t left = rows_with(counts(free[word]), least);
      if (left != 0 && most < kLanesMax) {
        left &= ~rows_with(counts(whole[word]), most + 1);
      }
      for (; left != 0; left &= left - 1) {
        const auto field = static_cast<std::size_t>(std::countr_zero(left)) / lanes_per_row_;
        visit(static_cast<Row>(word * rows_per_word + field));
      }
    }
  }
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
  // One bit in the lowest place of each field of `bits` bits.
  static constexpr std::uint64_t ones(std::size_t bits) {
    return bits == 64 ? 1 : ~std::uint64_t{0} / ((std::uint64_t{1} << bits) - 1);
  }
  // The number of bits of each row in a word, where the row is.
  std::uint64_t counts(std::uint64_t word) const {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    for (std::size_t width = 8; width < lanes_per_row_; width *= 2) {
      const std::uint64_t low = ones(2 * width) * ((std::uint64_t{1} << width) - 1);
      word = (word & low) + (word >> width & low);
    }
    return word;
  }
  // A bit in each row whose count is `gpus` or more: such a count plus the rest reaches bit 7.
  std::uint64_t rows_with(std::uint64_t counts, std::int64_t gpus) const {
    const std::uint64_t one = ones(lanes_per_row_);
    return (counts + one * static_cast<std::uint64_t>(0x80 - gpus)) & (one * 0x80);
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
