// The attempts of this node: what lies on disk, what is being prepared, and what the shims say.
//
// It performs the actions of agent_core/reconcile.h that concern attempts, and remembers just
// enough to observe the node again. All on the loop's thread; every call takes at most
// milliseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_watch.h"
#include "agent/runtime/attempt_dir.h"
#include "agent_core/reconcile.h"
#include "base/result.h"

namespace bmgpu::v1 {
class AttemptSpec;
}
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

class EventLoop;

struct Attempt {
  using Clock = std::chrono::steady_clock;

  AttemptName name;
  AttemptDir dir;
  std::vector<std::string> gpu_uuids;
  std::unique_ptr<v1::AttemptStatus>
      status;  // as last read; the agent's own while files are fetched
  Instant want_lease_end;
  bool want_stop = false;
  bool on_disk = false;       // false: its files are still being fetched
  bool shim_alive = false;    // as last looked; a shim that was just started counts
  bool log_complete = false;  // bmd has every line
  Clock::time_point shim_started;
  int shim_starts = 0;  // without a status change in between

  bool ended() const;
};

class AttemptTable {
 public:
  using Key = agent_core::AttemptKey;
  struct Callbacks {
    std::function<void(const Key&)> on_status;  // its status is another one
    std::function<void(const Key&)> on_log;     // its log may have grown
  };

  // `shim_program` + <attempt folder> runs a shim. `log` and `loop` outlive the table.
  static Result<std::unique_ptr<AttemptTable>> create(EventLoop& loop, wire::Log& log,
                                                      std::string state_dir,
                                                      std::vector<std::string> shim_program,
                                                      Callbacks callbacks);
  ~AttemptTable();

  // Takes up what an agent before this one left behind. Call it once, first.
  void load();

  const std::map<Key, Attempt>& all() const { return attempts_; }
  const Attempt* find(const Key& key) const;
  std::vector<agent_core::ObservedAttempt> observed() const;

  // An attempt whose files are being fetched: known and reported, nothing on disk.
  void expect(const Key& key, const v1::AttemptSpec& spec);
  void set_progress(const Key& key, const std::string& progress);
  // Writes folder, order and want, and starts the shim. An attempt that was expected goes on here.
  Result<void> start(const Key& key, const v1::ShimOrder& order);
  // It can never start: kept as ended on disk until bmd has taken it up.
  void fail(const Key& key, const v1::AttemptSpec& spec, int end_reason, const std::string& detail);

  void update_want(const Key& key, Instant lease_end, bool stop);
  // Rests between starts of a shim that dies again and again: 1 s, 2 s, … 60 s.
  void start_shim(const Key& key);
  // Drops it and everything of it on disk.
  void forget(const Key& key);
  void set_log_complete(const Key& key);

  // Looks again which shims live and what they wrote; for what no notice tells.
  void look();
  // Of one attempt: whether its shim lives.
  bool look_for_shim(const Key& key);

 private:
  AttemptTable(EventLoop& loop, wire::Log& log, std::string state_dir,
               std::vector<std::string> shim_program, Callbacks callbacks);
  void load_one(const AttemptName& name);
  void read_status(const Key& key, Attempt& attempt);
  bool shim_lives(const Attempt& attempt) const;
  void spawn(Attempt& attempt);
  void watch(const Key& key, const Attempt& attempt);

  EventLoop& loop_;
  wire::Log& log_;
  const std::string state_dir_;
  const std::vector<std::string> shim_program_;
  const Callbacks callbacks_;
  std::unique_ptr<AttemptWatch> watch_;
  std::map<Key, Attempt> attempts_;
};

// The key of a name; absent if its lease is no lease's name.
std::optional<agent_core::AttemptKey> key_of(const AttemptName& name);
AttemptName name_of(const v1::AttemptSpec& spec);

}  // namespace bmgpu::agent
