#include <algorithm>

#include "base/check.h"
#include "core/apply_parts.h"
#include "core/book/stays.h"
#include "core/indexes.h"

namespace bmgpu::core {
namespace {

NodeRecord& node_at(State& state, NodeId id) {
  const auto it = state.nodes.find(id);
  check(it != state.nodes.end(), "apply: no such node");
  return it->second;
}

GpuRecord& gpu_at(NodeRecord& node, GpuId id) {
  const auto it = std::find_if(node.gpus.begin(), node.gpus.end(),
                               [&](const GpuRecord& gpu) { return gpu.id == id; });
  check(it != node.gpus.end(), "apply: no such GPU on the node");
  return *it;
}

// Changes a node while it is off the pools' lists.
template <typename Change>
void change_node(State& state, NodeId id, Change change) {
  NodeRecord& node = node_at(state, id);
  if (const auto deadline = deadline_of(state, node)) {
    state.deadlines.erase(*deadline);
  }
  unlist_node(state, node);
  change(node);
  list_node(state, node);
  refresh_offer(state, node);
  if (const auto deadline = deadline_of(state, node)) {
    state.deadlines.insert(*deadline);
  }
  note_change(state);
}

// The same where the GPUs that it has, their classes or its site change.
template <typename Change>
void change_inventory(State& state, NodeId id, Change change) {
  change_node(state, id, [&](NodeRecord& node) {
    leave_book(state, node);
    change(node);
  });
  enter_book(state, node_at(state, id));
  note_change(state);
}

// A device that was moved here leaves the records of the node where it was.
void take_from_other_node(State& state, NodeId here, GpuId gpu) {
  const auto it = state.node_of_gpu.find(gpu);
  if (it == state.node_of_gpu.end() || it->second == here) {
    return;
  }
  change_inventory(state, it->second, [&](NodeRecord& other) {
    check(gpu_at(other, gpu).lease.is_none(), "apply: a leased GPU moves");
    std::erase_if(other.gpus, [&](const GpuRecord& record) { return record.id == gpu; });
    other.classes = classes_of(other);
  });
}

void name_gpu(State& state, NodeRecord& node, const RegisteredGpu& named) {
  const auto it = std::find_if(node.gpus.begin(), node.gpus.end(),
                               [&](const GpuRecord& gpu) { return gpu.id == named.id; });
  if (it == node.gpus.end()) {
    node.gpus.push_back(
        GpuRecord{.id = named.id, .gpu_class = named.gpu_class, .uuid = named.uuid});
    state.node_of_gpu[named.id] = node.id;
    state.gpu_of_uuid[named.uuid] = named.id;
    note_id(state, named.id.value());
    return;
  }
  it->gpu_class = named.gpu_class;
  if (!it->named) {
    it->named = true;
    it->state = GpuState::Sanitizing;  // where it has been meanwhile is not known
  }
}

void drop_unnamed(NodeRecord& node, const std::vector<RegisteredGpu>& named) {
  for (GpuRecord& gpu : node.gpus) {
    const bool is_named = std::any_of(named.begin(), named.end(),
                                      [&](const RegisteredGpu& one) { return one.id == gpu.id; });
    if (!is_named) {
      check(gpu.lease.is_none(), "apply: an inventory without a leased GPU");
      gpu.named = false;
      gpu.state = GpuState::Failed;
    }
  }
}

}  // namespace

void apply_event(State& state, const NodeRegistered& event) {
  state.nodes.try_emplace(event.node).first->second.id = event.node;
  for (const RegisteredGpu& gpu : event.gpus) {
    take_from_other_node(state, event.node, gpu.id);
  }
  change_inventory(state, event.node, [&](NodeRecord& node) {
    node.owner = event.owner;
    node.site = event.site;
    node.capacity = event.capacity;
    node.driver = event.driver;
    node.owner_floor = event.owner_floor;
    node.lost = false;
    node.last_acknowledged = Instant();
    for (const RegisteredGpu& gpu : event.gpus) {
      name_gpu(state, node, gpu);
    }
    drop_unnamed(node, event.gpus);
    std::sort(node.gpus.begin(), node.gpus.end(),
              [](const GpuRecord& a, const GpuRecord& b) { return a.id < b.id; });
    node.gpus_named = std::ssize(event.gpus);
    node.classes = classes_of(node);
  });
}

void apply_event(State& state, const NodeReadyChanged& event) {
  change_node(state, event.node, [&](NodeRecord& node) {
    node.ready = event.ready;
    if (event.ready) {
      node.lost = false;
      node.last_acknowledged = Instant();
    }
  });
}

void apply_event(State& state, const NodeListingChanged& event) {
  change_node(state, event.node, [&](NodeRecord& node) {
    node.listing = event.listing;
    node.listing_since = event.at;
    node.left_supply = false;
  });
  note_time(state, event.at);
}

void apply_event(State& state, const NodeLeftSupply& event) {
  change_node(state, event.node, [](NodeRecord& node) { node.left_supply = true; });
}

void apply_event(State& state, const NodeLost& event) {
  change_node(state, event.node, [&](NodeRecord& node) {
    node.ready = false;
    node.lost = true;
    node.last_acknowledged = event.last_acknowledged;
  });
}

void apply_event(State& state, const NodeRemoved& event) {
  NodeRecord& node = node_at(state, event.node);
  check(node.stays.empty(), "apply: a node with leases is removed");
  if (const auto deadline = deadline_of(state, node)) {
    state.deadlines.erase(*deadline);
  }
  unlist_node(state, node);
  leave_book(state, node);
  for (const GpuRecord& gpu : node.gpus) {
    state.node_of_gpu.erase(gpu.id);
    state.gpu_of_uuid.erase(gpu.uuid);
  }
  state.nodes.erase(event.node);
  note_change(state);
}

void apply_event(State& state, const GpuStateChanged& event) {
  const auto it = state.node_of_gpu.find(event.gpu);
  check(it != state.node_of_gpu.end(), "apply: no such GPU");
  change_node(state, it->second, [&](NodeRecord& node) {
    GpuRecord& gpu = gpu_at(node, event.gpu);
    if (event.state == GpuState::Free) {
      check(gpu.state == GpuState::Sanitizing, "apply: a GPU is offered without sanitizing");
    }
    if (event.state != GpuState::Failed) {
      check(gpu.lease.is_none(), "apply: a leased GPU is offered");
      check(event.state != GpuState::Leased, "apply: leased without a lease");
    }
    gpu.state = event.state;
  });
}

}  // namespace bmgpu::core
