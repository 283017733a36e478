#include "core/book/calendar.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kSlots = Limits::kBookSlots;
constexpr std::int64_t kLookEvery = 8;  // slots between two looks whether a window is hopeless

std::size_t ring_index(SlotNumber slot) { return static_cast<std::size_t>(slot.count()) % kSlots; }

}  // namespace

Calendar::Calendar(SlotNumber first) : first_(first), leased_(kSlots, 0), booked_(kSlots, 0) {}

std::size_t Calendar::plane(SlotNumber slot) const { return ring_index(slot) * words_per_slot_; }

void Calendar::advance(SlotNumber first) {
  check(first >= first_, "calendar: time runs backwards");
  const SlotNumber known = end();
  const SlotNumber next = first + SlotNumber(Limits::kBookSlots);
  const SlotNumber from = std::max(known, first);
  first_ = first;
  for (SlotNumber slot = from; slot < next; slot += SlotNumber(1)) {
    std::fill_n(taken_.begin() + static_cast<std::ptrdiff_t>(plane(slot)), words_per_slot_, 0);
    leased_[ring_index(slot)] = 0;
    booked_[ring_index(slot)] = 0;
  }
}

void Calendar::reshape(std::size_t lanes_per_row, std::size_t words) {
  const std::size_t rows_per_word = 64 / lanes_per_row;
  const auto moved = [&](const Words& old, std::size_t old_begin, Words& to, std::size_t begin) {
    for (Row row = 0; row < rows(); ++row) {
      const std::size_t bit = std::size_t{row} * lanes_per_row_;
      const std::uint64_t value = old[old_begin + bit / 64] >> (bit % 64) & row_mask();
      to[begin + row / rows_per_word] |= value << (row % rows_per_word * lanes_per_row);
    }
  };
  Words taken(kSlots * words, 0);
  Words offered(words, 0);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (lanes_per_row == lanes_per_row_) {
      std::copy_n(taken_.begin() + static_cast<std::ptrdiff_t>(slot * words_per_slot_),
                  words_per_slot_, taken.begin() + static_cast<std::ptrdiff_t>(slot * words));
    } else {
      moved(taken_, slot * words_per_slot_, taken, slot * words);
    }
  }
  moved(offered_, 0, offered, 0);
  taken_ = std::move(taken);
  offered_ = std::move(offered);
  lanes_per_row_ = lanes_per_row;
  words_per_slot_ = words;
}

Calendar::Row Calendar::add_row(NodeId node, std::int64_t lanes, Price owner_floor) {
  check(lanes >= 1 && lanes <= 64, "calendar: a row has 1 to 64 GPUs");
  const std::size_t needed =
      std::max<std::size_t>(std::bit_ceil(static_cast<std::size_t>(lanes)), 8);
  const std::size_t lanes_per_row = std::max(lanes_per_row_, needed);
  const std::size_t rows_wanted = nodes_.size() + (spare_rows_.empty() ? 1 : 0);
  const std::size_t words = std::bit_ceil((rows_wanted * lanes_per_row + 63) / 64);
  if (lanes_per_row != lanes_per_row_ || words > words_per_slot_) {
    reshape(lanes_per_row, std::max(words, words_per_slot_));
  }
  if (spare_rows_.empty()) {
    nodes_.push_back(node);
    floors_.push_back(owner_floor);
    return rows() - 1;
  }
  const Row row = spare_rows_.back();
  spare_rows_.pop_back();
  nodes_[row] = node;
  floors_[row] = owner_floor;
  return row;
}

void Calendar::remove_row(Row row) {
  offer(row, 0);
  release(row, first_, end(), row_mask());
  nodes_[row] = NodeId();
  floors_[row] = Price();
  spare_rows_.push_back(row);
}

void Calendar::offer(Row row, std::uint64_t lanes) {
  const std::size_t bit = std::size_t{row} * lanes_per_row_;
  std::uint64_t& word = offered_[bit / 64];
  word = (word & ~(row_mask() << (bit % 64))) | lanes << (bit % 64);
}

void Calendar::take(Row row, SlotNumber from, SlotNumber until, std::uint64_t lanes) {
  const std::size_t bit = std::size_t{row} * lanes_per_row_;
  for (SlotNumber slot = std::max(from, first_); slot < std::min(until, end());
       slot += SlotNumber(1)) {
    taken_[plane(slot) + bit / 64] |= lanes << (bit % 64);
  }
}

void Calendar::release(Row row, SlotNumber from, SlotNumber until, std::uint64_t lanes) {
  const std::size_t bit = std::size_t{row} * lanes_per_row_;
  for (SlotNumber slot = std::max(from, first_); slot < std::min(until, end());
       slot += SlotNumber(1)) {
    taken_[plane(slot) + bit / 64] &= ~(lanes << (bit % 64));
  }
}

void Calendar::count(SlotNumber from, SlotNumber until, std::int64_t leased, std::int64_t booked) {
  for (SlotNumber slot = std::max(from, first_); slot < std::min(until, end());
       slot += SlotNumber(1)) {
    leased_[ring_index(slot)] += static_cast<std::int32_t>(leased);
    booked_[ring_index(slot)] += static_cast<std::int32_t>(booked);
  }
}

std::uint64_t Calendar::taken(Row row, SlotNumber slot) const {
  if (!knows(slot)) {
    return 0;
  }
  const std::size_t bit = std::size_t{row} * lanes_per_row_;
  return taken_[plane(slot) + bit / 64] >> (bit % 64) & row_mask();
}

std::int64_t Calendar::leased(SlotNumber slot) const {
  return knows(slot) ? leased_[ring_index(slot)] : 0;
}

std::int64_t Calendar::booked(SlotNumber slot) const {
  return knows(slot) ? booked_[ring_index(slot)] : 0;
}

std::optional<Price> Calendar::lowest_floor() const {
  std::optional<Price> lowest;
  for (Row row = 0; row < rows(); ++row) {
    if ((!lowest || floors_[row] < *lowest) && offered(row) != 0) {
      lowest = floors_[row];
    }
  }
  return lowest;
}

bool Calendar::has_row_with(const Words& free, std::int64_t gpus) const {
  if (gpus > static_cast<std::int64_t>(lanes_per_row_)) {
    return false;
  }
  std::uint64_t reached = 0;
  for (const std::uint64_t word : free) {
    reached |= rows_with(counts(word), gpus);
  }
  return reached != 0;
}

std::optional<SlotNumber> Calendar::find_free(SlotNumber from, SlotNumber until, std::int64_t gpus,
                                              Words& free) const {
  free = offered_;
  std::int64_t next_look = 1;
  for (SlotNumber slot = from; slot < until; slot += SlotNumber(1)) {
    take_out(slot, free);
    if (--next_look == 0) {
      next_look = kLookEvery;
      if (!has_row_with(free, gpus)) {
        return slot;
      }
    }
  }
  if (has_row_with(free, gpus)) {
    return std::nullopt;
  }
  return from < until ? until - SlotNumber(1) : from;
}

void Calendar::take_out(SlotNumber slot, Words& free) const {
  if (knows(slot)) {
    const std::uint64_t* taken = taken_.data() + plane(slot);
    for (std::size_t word = 0; word < words_per_slot_; ++word) {
      free[word] &= ~taken[word];
    }
  }
}

bool Calendar::says_the_same(const Calendar& other) const {
  if (first_ != other.first_ || leased_ != other.leased_ || booked_ != other.booked_) {
    return false;
  }
  if (nodes_ == other.nodes_ && lanes_per_row_ == other.lanes_per_row_ &&
      words_per_slot_ == other.words_per_slot_) {
    return floors_ == other.floors_ && offered_ == other.offered_ && taken_ == other.taken_;
  }
  std::vector<std::pair<NodeId, Row>> here;
  std::vector<std::pair<NodeId, Row>> there;
  for (Row row = 0; row < rows(); ++row) {
    if (!nodes_[row].is_none()) {
      here.emplace_back(nodes_[row], row);
    }
  }
  for (Row row = 0; row < other.rows(); ++row) {
    if (!other.nodes_[row].is_none()) {
      there.emplace_back(other.nodes_[row], row);
    }
  }
  std::sort(here.begin(), here.end());
  std::sort(there.begin(), there.end());
  const auto same_row = [&](const auto& a, const auto& b) {
    bool same = a.first == b.first && floors_[a.second] == other.floors_[b.second] &&
                offered(a.second) == other.offered(b.second);
    for (SlotNumber slot = first_; same && slot < end(); slot += SlotNumber(1)) {
      same = taken(a.second, slot) == other.taken(b.second, slot);
    }
    return same;
  };
  return std::equal(here.begin(), here.end(), there.begin(), there.end(), same_row);
}

}  // namespace bmgpu::core
