// What a node says of itself to bmd, made from what it sees. Pure functions of their arguments.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/gpu/gpu.h"

namespace bmgpu::v1 {
class GpuReport;
class Inventory;
}  // namespace bmgpu::v1

namespace bmgpu::agent {

// One condition that must hold for the node to be offered.
struct NodeGate {
  std::string name;  // runtime, driver, cdi, disk, guard
  bool open = false;
  std::string detail;  // what was found, and what to do about it
  bool operator==(const NodeGate&) const = default;
};

// What of the machine jobs may use together.
struct NodeShare {
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int64_t scratch_mib = 0;
};

struct NodeFacts {
  NodeShare share;
  std::string runtime;              // Runtime::summary()
  std::vector<std::string> images;  // present on the node, sorted
  std::vector<NodeGate> gates;
};

// Changes only with what a person would call a change: temperatures and the like are no part of it.
v1::Inventory make_inventory(const GpuView& view, const NodeFacts& facts);

// Which attempts hold which GPUs, and since when a GPU is held by none.
struct GpuUse {
  std::set<std::string> held;                       // UUIDs
  std::map<std::string, std::int64_t> released_ms;  // CLOCK_BOOTTIME of the last release
};

// Whether nothing of a former tenant is left on a GPU that no attempt holds: no process computes on
// it and no memory beyond the driver's own is in use, read after the last release. A reading that
// failed, or that the driver does not have, proves nothing.
bool gpu_is_clean(const GpuState& gpu, const GpuUse& use);

v1::GpuReport make_gpu_report(const GpuView& view, const GpuUse& use);

// What a driver may keep in use for itself on an idle GPU: 1 % of its memory, at least this.
inline constexpr std::int64_t kIdleMemoryMib = 256;

}  // namespace bmgpu::agent
