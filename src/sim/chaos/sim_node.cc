#include "sim/chaos/sim_node.h"

#include <algorithm>
#include <utility>

namespace bmgpu::sim {
namespace {

constexpr std::int64_t kMillisecondNs = 1'000'000;
// What bm-init adds to the lease's end before it leaves by itself, so that the shim comes first.
constexpr Duration kInitPatience = seconds(8);

core::GpuClassSpec spec_of(Prng& random) {
  switch (random.below(3)) {
    case 0:
      return {"NVIDIA H100 80GB HBM3", 81'559, core::Form::Sxm};
    case 1:
      return {"NVIDIA A100 80GB PCIe", 81'920, core::Form::Pcie};
    default:
      return {"NVIDIA L4", 23'034, core::Form::Pcie};
  }
}

}  // namespace

SimNode::SimNode(World& in, NodeId node)
    : id(node), world(in), random(in.random.next()), guard_(*this), agent_(*this) {
  clock_offset_ = milliseconds(random.between(-2000, 2000));
  const core::GpuClassSpec spec = spec_of(random);
  const std::int64_t count = std::int64_t{1} << random.between(1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string uuid = "GPU-" + std::to_string(id.value()) + "-" + std::to_string(i);
    gpus_.push_back({{uuid, spec}, true, true});
  }
  if (random.chance(1, 4)) {
    owner_floor_ = Price(random.between(50'000, 400'000));
  }
}

std::int64_t SimNode::boottime_ns() const {
  return (world.now() - booted_at_).count() * kMillisecondNs;
}

void SimNode::boot() {
  up_ = true;
  ++boot_;
  booted_at_ = world.now() - seconds(20);
  engine_works_ = true;
  world.note("node boots", id.value());
  guard_.start();
  agent_.start();
}

void SimNode::crash(Duration down) {
  if (!up_) {
    return;
  }
  world.note("node crashes", id.value());
  up_ = false;
  guard_.node_dies();
  agent_.node_dies();
  for (auto& [key, shim] : shims_) {
    shim->die();
    dead_shims_.push_back(std::move(shim));
  }
  shims_.clear();
  for (auto& [key, container] : containers) {
    if (container.alive) {
      world.containers.dead(id, key, world.now());
    }
  }
  containers.clear();
  world.timeline.after(down, [this] {
    if (!up_) {
      boot();
    }
  });
}

// --- shims ---

SimShim* SimNode::shim(const Key& key) {
  const auto found = shims_.find(key);
  return found == shims_.end() ? nullptr : found->second.get();
}

void SimNode::spawn_shim(const Key& key) {
  if (shim(key) != nullptr) {
    return;
  }
  SimShim* raw = shims_.emplace(key, std::make_unique<SimShim>(*this, key)).first->second.get();
  world.timeline.after(milliseconds(random.between(2, 40)), [this, key, raw] {
    if (shim(key) == raw) {
      raw->begin();
    }
  });
}

void SimNode::shim_exits(const Key& key) {
  const auto found = shims_.find(key);
  if (found == shims_.end()) {
    return;
  }
  found->second->die();
  dead_shims_.push_back(std::move(found->second));
  shims_.erase(found);
}

void SimNode::crash_some_shim() {
  if (!shims_.empty()) {
    auto victim = shims_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(random.below(shims_.size())));
    world.note("shim crashes", id.value(), victim->first.lease.value());
    shim_exits(Key(victim->first));
  }
}

// --- GPUs ---

std::vector<core::GpuDescription> SimNode::gpus_seen() const {
  std::vector<core::GpuDescription> seen;
  for (const Gpu& gpu : gpus_) {
    if (gpu.present) {
      seen.push_back(gpu.description);
    }
  }
  return seen;
}

std::vector<bool> SimNode::gpus_ok() const {
  std::vector<bool> ok;
  for (const Gpu& gpu : gpus_) {
    if (gpu.present) {
      ok.push_back(gpu.ok);
    }
  }
  return ok;
}

bool SimNode::has_gpu(const std::string& uuid) const {
  return std::any_of(gpus_.begin(), gpus_.end(),
                     [&](const Gpu& gpu) { return gpu.present && gpu.description.uuid == uuid; });
}

bool SimNode::in_use(const std::string& uuid) const {
  return std::any_of(containers.begin(), containers.end(), [&](const auto& entry) {
    const auto dir = disk.find(entry.first);
    return entry.second.alive && dir != disk.end() &&
           std::count(dir->second.spec.gpu_uuids.begin(), dir->second.spec.gpu_uuids.end(), uuid) >
               0;
  });
}

void SimNode::fail_gpu() {
  Gpu& gpu = gpus_[random.below(gpus_.size())];
  gpu.ok = false;
  world.note("GPU fails", id.value());
  agent_.gpus_changed();
}

void SimNode::change_gpus() {
  for (Gpu& gpu : gpus_) {
    gpu.present = gpus_.size() == 1 || !random.chance(1, 3);
  }
  gpus_.front().present = true;
}

void SimNode::repair_gpus() {
  for (Gpu& gpu : gpus_) {
    gpu.present = true;
    gpu.ok = true;
  }
  agent_.gpus_changed();
}

void SimNode::set_owner_floor(Price floor) {
  owner_floor_ = floor;
  agent_.gpus_changed();
}

std::vector<int> SimNode::gpu_numbers(const Key& key) const {
  std::vector<int> numbers;
  for (const std::string& uuid : disk.at(key).spec.gpu_uuids) {
    const auto at = std::find_if(gpus_.begin(), gpus_.end(),
                                 [&](const Gpu& gpu) { return gpu.description.uuid == uuid; });
    numbers.push_back(static_cast<int>(at - gpus_.begin()));
  }
  return numbers;
}

// --- the container engine ---

void SimNode::set_engine(bool works) {
  engine_works_ = works;
  agent_.gpus_changed();
}

Container* SimNode::container(const Key& key) {
  const auto found = containers.find(key);
  return found == containers.end() ? nullptr : &found->second;
}

void SimNode::create_container(const Key& key, Instant deadline) {
  containers[key] = Container{true, false, deadline, std::nullopt};
  world.note("container created", id.value(), key.lease.value());
  world.containers.created(id, key, gpu_numbers(key), world.now());
  watch_deadline(key);
}

void SimNode::set_deadline(const Key& key, Instant deadline) {
  Container* found = container(key);
  if (found != nullptr && found->deadline != deadline) {
    found->deadline = deadline;
    watch_deadline(key);
  }
}

void SimNode::watch_deadline(const Key& key) {
  const Instant deadline = container(key)->deadline;
  if (world.sabotage == Sabotage::ShimIgnoresLeaseEnd) {
    return;
  }
  world.timeline.at(deadline + kInitPatience, [this, key, deadline, boot = boot_] {
    const Container* found = container(key);
    if (boot == boot_ && found != nullptr && found->deadline == deadline) {
      kill_container(key, 143);
    }
  });
}

void SimNode::release_container(const Key& key) {
  Container& released = containers.at(key);
  released.released = true;
  world.note("job released", id.value(), key.lease.value());
  world.containers.released(id, key, world.now());
  // Most jobs end by themselves, some of them after the lease.
  const Duration work = seconds(random.between(5, 1500));
  world.timeline.after(work, [this, key, boot = boot_] {
    const Container* found = container(key);
    if (boot == boot_ && found != nullptr && found->released) {
      kill_container(key, random.chance(1, 5) ? 1 : 0);
    }
  });
}

void SimNode::kill_container(const Key& key, std::optional<std::int32_t> exit_code) {
  Container* found = container(key);
  if (found == nullptr || !found->alive) {
    return;
  }
  found->alive = false;
  found->exit_code = exit_code;
  world.note("container dead", id.value(), key.lease.value());
  world.containers.dead(id, key, world.now());
  SimShim* supervisor = shim(key);
  if (supervisor != nullptr) {
    world.timeline.after(milliseconds(random.between(1, 10)), [this, key, supervisor, exit_code] {
      if (shim(key) == supervisor) {
        supervisor->job_ended(exit_code.value_or(0));
      }
    });
  }
}

void SimNode::remove_container(const Key& key) {
  if (!engine_works_) {
    return;
  }
  kill_container(key, 137);
  containers.erase(key);
}

}  // namespace bmgpu::sim
