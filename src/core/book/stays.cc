#include "core/book/stays.h"

#include <algorithm>

#include "base/check.h"
#include "core/indexes.h"

namespace bmgpu::core {
namespace {

// visit(GpuRecord, lane) for each named GPU of the class.
template <typename Visit>
void for_each_lane(const NodeRecord& node, ClassId gpu_class, Visit visit) {
  std::uint64_t lane = 1;
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.named && gpu.gpu_class == gpu_class) {
      visit(gpu, lane);
      lane <<= 1;
    }
  }
}

std::size_t class_index(const NodeRecord& node, ClassId gpu_class) {
  const auto it = std::find(node.classes.begin(), node.classes.end(), gpu_class);
  check(it != node.classes.end(), "book: a class that the node lacks");
  return static_cast<std::size_t>(it - node.classes.begin());
}

Calendar* calendar_of(State& state, const NodeRecord& node, ClassId gpu_class) {
  const auto it = state.calendars.find(PoolKey{gpu_class, node.site});
  return it != state.calendars.end() ? &it->second : nullptr;
}

std::optional<Calendar::Row> row_of(const NodeRecord& node, ClassId gpu_class) {
  const auto it = std::find(node.classes.begin(), node.classes.end(), gpu_class);
  return it != node.classes.end()
             ? node.rows.at(static_cast<std::size_t>(it - node.classes.begin()))
             : std::nullopt;
}

Stay stay_of(const NodeRecord& node, const Lease& lease, const RankPlacement& rank) {
  return Stay{lease.start,
              lease.end,
              lease.id,
              lease.gpu_class,
              lanes_of(node, lease.gpu_class, rank.items),
              {rank.cpu_millis, rank.memory_mib, rank.scratch_mib},
              lease.state == LeaseState::Booked};
}

bool is_before(const Stay& a, const Stay& b) {
  return std::pair(a.from, a.lease) < std::pair(b.from, b.lease);
}

void take_slots(State& state, const NodeRecord& node, const Stay& stay, SlotSpan within) {
  const auto row = row_of(node, stay.gpu_class);
  if (!row || stay.lanes == 0) {
    return;
  }
  const SlotSpan span = slots_of(stay.from, stay.until);
  calendar_of(state, node, stay.gpu_class)
      ->take(*row, std::max(span.first, within.first), std::min(span.until, within.until),
             stay.lanes);
}

// What a lease adds to the demand of slots: an owner's own use is none.
void count_slots(State& state, const Lease& lease, SlotSpan span, std::int64_t sign) {
  Calendar& calendar = state.calendars.at(PoolKey{lease.gpu_class, lease.site});
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    if (lease.tenant != state.nodes.at(rank.node).owner) {
      const std::int64_t gpus = sign * std::ssize(rank.items);
      calendar.count(span.first, span.until, gpus, lease.state == LeaseState::Booked ? gpus : 0);
    }
  }
}

Instant book_end(const State& state) {
  return slot_start(state.open_slot + SlotNumber(Limits::kBookSlots));
}

}  // namespace

SlotSpan slots_of(Instant from, Instant until) {
  check(from < until, "book: an empty interval");
  return SlotSpan{slot_of(from), slot_of(until - milliseconds(1)) + SlotNumber(1)};
}

std::uint64_t lanes_of(const NodeRecord& node, ClassId gpu_class, const std::vector<Item>& items) {
  std::uint64_t lanes = 0;
  for_each_lane(node, gpu_class, [&](const GpuRecord& gpu, std::uint64_t lane) {
    const bool is_one = std::any_of(items.begin(), items.end(),
                                    [&](const Item& item) { return item.gpu == gpu.id; });
    lanes |= is_one ? lane : 0;
  });
  return lanes;
}

std::uint64_t healthy_lanes(const NodeRecord& node, ClassId gpu_class) {
  std::uint64_t lanes = 0;
  for_each_lane(node, gpu_class, [&](const GpuRecord& gpu, std::uint64_t lane) {
    lanes |= gpu.state != GpuState::Failed ? lane : 0;
  });
  return lanes;
}

std::uint64_t free_lanes(const NodeRecord& node, ClassId gpu_class) {
  std::uint64_t lanes = 0;
  for_each_lane(node, gpu_class, [&](const GpuRecord& gpu, std::uint64_t lane) {
    lanes |= gpu.state == GpuState::Free ? lane : 0;
  });
  return lanes;
}

std::uint64_t held_lanes(const NodeRecord& node, ClassId gpu_class, Instant from, Instant until,
                         LeaseId except) {
  std::uint64_t lanes = 0;
  for (const Stay& stay : node.stays) {
    if (stay.from >= until) {
      break;
    }
    if (stay.gpu_class == gpu_class && stay.until > from && stay.lease != except) {
      lanes |= stay.lanes;
    }
  }
  return lanes;
}

std::optional<Instant> held_from(const NodeRecord& node, ClassId gpu_class, std::uint64_t lanes,
                                 Instant from, LeaseId except) {
  for (const Stay& stay : node.stays) {
    if (stay.gpu_class == gpu_class && (stay.lanes & lanes) != 0 && stay.until > from &&
        stay.lease != except) {
      return std::max(stay.from, from);
    }
  }
  return std::nullopt;
}

NodeCapacity peak_use(const NodeRecord& node, Instant from, Instant until, LeaseId except) {
  NodeCapacity peak;
  const auto look_at = [&](Instant at) {
    NodeCapacity sum;
    for (const Stay& stay : node.stays) {
      if (stay.from <= at && at < stay.until && stay.lease != except) {
        sum.cpu_millis += stay.takes.cpu_millis;
        sum.memory_mib += stay.takes.memory_mib;
        sum.scratch_mib += stay.takes.scratch_mib;
      }
    }
    peak.cpu_millis = std::max(peak.cpu_millis, sum.cpu_millis);
    peak.memory_mib = std::max(peak.memory_mib, sum.memory_mib);
    peak.scratch_mib = std::max(peak.scratch_mib, sum.scratch_mib);
  };
  look_at(from);
  for (const Stay& stay : node.stays) {  // use rises only where one begins
    if (from < stay.from && stay.from < until && stay.lease != except) {
      look_at(stay.from);
    }
  }
  return peak;
}

bool is_displaced(const State& state, const Lease& lease) {
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    const NodeRecord& node = state.nodes.at(rank.node);
    const std::uint64_t lanes = lanes_of(node, lease.gpu_class, rank.items);
    const auto found = static_cast<std::int64_t>(__builtin_popcountll(lanes));
    if (node.lost || node.listing == NodeListing::Draining || found != std::ssize(rank.items) ||
        (lanes & ~healthy_lanes(node, lease.gpu_class)) != 0) {
      return true;
    }
  }
  return false;
}

void add_stay(State& state, const Lease& lease) {
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    NodeRecord& node = state.nodes.at(rank.node);
    const Stay stay = stay_of(node, lease, rank);
    node.stays.insert(std::upper_bound(node.stays.begin(), node.stays.end(), stay, is_before),
                      stay);
    node.booked += stay.booked ? 1 : 0;
    take_slots(state, node, stay, slots_of(stay.from, stay.until));
  }
  count_slots(state, lease, slots_of(lease.start, lease.end), 1);
  if (lease.end > book_end(state)) {
    state.far_leases.emplace(lease.end, lease.id);
  }
  if (lease.state == LeaseState::Booked) {
    if (lease.delayed) {
      state.delayed.emplace(lease.start, lease.id);
    }
    if (is_displaced(state, lease)) {
      state.displaced.emplace(lease.start, lease.id);
    }
  }
}

void remove_stay(State& state, const Lease& lease) {
  const SlotSpan span = slots_of(lease.start, lease.end);
  for (const RankPlacement& rank : lease.allocations.back().ranks) {
    NodeRecord& node = state.nodes.at(rank.node);
    const auto it = std::find_if(node.stays.begin(), node.stays.end(),
                                 [&](const Stay& stay) { return stay.lease == lease.id; });
    check(it != node.stays.end(), "book: a lease without its place");
    const Stay gone = *it;
    node.stays.erase(it);
    node.booked -= gone.booked ? 1 : 0;
    const auto row = row_of(node, gone.gpu_class);
    if (!row) {
      continue;
    }
    calendar_of(state, node, gone.gpu_class)->release(*row, span.first, span.until, gone.lanes);
    for (const Stay& other : node.stays) {  // its first and last slot may be another's too
      if (other.gpu_class == gone.gpu_class && (other.lanes & gone.lanes) != 0) {
        take_slots(state, node, other, span);
      }
    }
  }
  count_slots(state, lease, span, -1);
  state.far_leases.erase({lease.end, lease.id});
  state.delayed.erase({lease.start, lease.id});
  state.displaced.erase({lease.start, lease.id});
}

void leave_book(State& state, NodeRecord& node) {
  for (std::size_t i = 0; i < node.rows.size(); ++i) {
    if (node.rows[i]) {
      calendar_of(state, node, node.classes[i])->remove_row(*node.rows[i]);
    }
  }
  node.rows.clear();
}

void enter_book(State& state, NodeRecord& node) {
  node.rows.assign(node.classes.size(), std::nullopt);
  for (const ClassId gpu_class : node.classes) {
    const std::int64_t lanes = share_of(node, gpu_class).named;
    Calendar& calendar =
        state.calendars.try_emplace(PoolKey{gpu_class, node.site}, state.open_slot).first->second;
    if (lanes > 0) {
      node.rows[class_index(node, gpu_class)] = calendar.add_row(node.id, lanes, node.owner_floor);
    }
  }
  for (Stay& stay : node.stays) {
    const Lease& lease = state.leases.at(stay.lease);
    for (const RankPlacement& rank : lease.allocations.back().ranks) {
      if (rank.node == node.id) {
        stay = stay_of(node, lease, rank);
        take_slots(state, node, stay, slots_of(stay.from, stay.until));
      }
    }
  }
  refresh_offer(state, node);
}

void refresh_offer(State& state, const NodeRecord& node) {
  for (std::size_t i = 0; i < node.rows.size(); ++i) {
    if (node.rows[i]) {
      calendar_of(state, node, node.classes[i])
          ->offer(*node.rows[i], can_be_placed_on(node) ? healthy_lanes(node, node.classes[i]) : 0);
    }
  }
  if (node.booked == 0) {
    return;
  }
  for (const Stay& stay : node.stays) {
    if (stay.booked) {
      const Lease& lease = state.leases.at(stay.lease);
      const std::pair<Instant, LeaseId> key{lease.start, lease.id};
      is_displaced(state, lease) ? static_cast<void>(state.displaced.insert(key))
                                 : static_cast<void>(state.displaced.erase(key));
    }
  }
}

void advance_book(State& state, SlotNumber first) {
  check(first >= state.open_slot, "book: time runs backwards");
  const SlotNumber known = state.open_slot + SlotNumber(Limits::kBookSlots);
  state.open_slot = first;
  for (auto& [key, calendar] : state.calendars) {
    calendar.advance(first);
  }
  const Instant end = book_end(state);
  for (auto it = state.far_leases.begin(); it != state.far_leases.end();) {
    const Lease& lease = state.leases.at(it->second);
    const SlotSpan span = slots_of(lease.start, lease.end);
    const SlotSpan added{std::max(span.first, known), span.until};
    for (const RankPlacement& rank : lease.allocations.back().ranks) {
      const NodeRecord& node = state.nodes.at(rank.node);
      take_slots(state, node, stay_of(node, lease, rank), added);
    }
    count_slots(state, lease, added, 1);
    it = it->first <= end ? state.far_leases.erase(it) : std::next(it);
  }
}

}  // namespace bmgpu::core
