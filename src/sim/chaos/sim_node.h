// One GPU server: its disk, its GPUs, its containers, and the three programs of bm-agent. What
// survives what is as on a real one: a crash of the node ends every process and container and keeps
// the disk; programs die one by one and are started again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/chaos/sim_agent.h"
#include "sim/chaos/sim_guard.h"
#include "sim/chaos/sim_shim.h"
#include "sim/chaos/world.h"

namespace bmgpu::sim {

// A lease's directory in the agent's state folder.
struct AttemptDir {
  core::DesiredAttempt spec;
  std::uint64_t boot = 0;  // when it was made
  Instant want_end;        // by the market's clock, as the agent wrote it
  bool want_stop = false;
  AttemptStatus status;
  bool log_complete = false;
  bool releasing = false;  // the shim's memory
  bool released = false;
};

// What the container engine has.
struct Container {
  bool alive = true;  // some process of it
  bool released = false;
  Instant deadline;  // bm-init ends it then, whoever else is dead
  std::optional<std::int32_t> exit_code;
};

class SimNode {
 public:
  using Key = agent_core::AttemptKey;

  SimNode(World& world, NodeId id);
  static AccountId owner_of(NodeId id) { return AccountId(1000 + id.value() % 3); }
  static SiteId site_of(NodeId id) { return SiteId(1 + id.value() % 2); }

  void boot();
  void crash(Duration down);
  bool is_up() const { return up_; }
  std::uint64_t boot_number() const { return boot_; }
  std::int64_t boottime_ns() const;
  // The node's wall clock, off by up to two seconds.
  Instant wall() const { return world.now() + clock_offset_; }
  Duration clock_offset() const { return clock_offset_; }

  SimGuard& guard() { return guard_; }
  SimAgent& agent() { return agent_; }
  SimShim* shim(const Key& key);
  void spawn_shim(const Key& key);
  void shim_exits(const Key& key);
  void crash_some_shim();

  // --- GPUs ---
  std::vector<core::GpuDescription> gpus_seen() const;
  std::vector<bool> gpus_ok() const;
  bool has_gpu(const std::string& uuid) const;
  bool in_use(const std::string& uuid) const;  // by a process, as the driver sees it
  void fail_gpu();
  void change_gpus();  // a card is taken out or put in, with the power off
  void repair_gpus();
  Price owner_floor() const { return owner_floor_; }
  void set_owner_floor(Price floor);

  // --- the container engine ---
  bool engine_works() const { return engine_works_; }
  void set_engine(bool works);
  void create_container(const Key& key, Instant deadline);
  void release_container(const Key& key);
  void set_deadline(const Key& key, Instant deadline);
  void kill_container(const Key& key, std::optional<std::int32_t> exit_code);
  void remove_container(const Key& key);
  Container* container(const Key& key);

  const NodeId id;
  World& world;
  Prng random;
  std::map<Key, AttemptDir> disk;
  std::map<Key, Container> containers;

 private:
  struct Gpu {
    core::GpuDescription description;
    bool present = true;
    bool ok = true;
  };
  std::vector<int> gpu_numbers(const Key& key) const;
  void watch_deadline(const Key& key);

  bool up_ = false;
  std::uint64_t boot_ = 0;
  Instant booted_at_;
  Duration clock_offset_;
  bool engine_works_ = true;
  Price owner_floor_;
  std::vector<Gpu> gpus_;
  SimGuard guard_;
  SimAgent agent_;
  std::map<Key, std::unique_ptr<SimShim>> shims_;
  std::vector<std::unique_ptr<SimShim>> dead_shims_;  // they may still be on the stack
};

}  // namespace bmgpu::sim
