// The market loop: the one thread that owns the core's state and the journal.
//
// A turn takes everything that waits in the inbox, decides and applies it, appends all events in
// one durable commit, and only then answers. Reads are answered after the commit too, so no reply
// shows what is not durable.
//
// When the journal cannot be written (disk full), nothing of the turn has happened: its callers get
// Unavailable, the state is built anew from the journal, and the loop goes on read-only until a
// write succeeds again.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "controld/inbox.h"
#include "controld/turn.h"
#include "core/core.h"
#include "store/journal.h"
#include "wire/log.h"

namespace bmgpu::controld {

class Metrics;

// What the loop serves. All calls on the loop's thread.
class LoopClient {
 public:
  virtual ~LoopClient() = default;
  virtual void begin(Turn& turn) = 0;                              // first in every turn
  virtual void observe(Turn& turn, const core::Event& event) = 0;  // right before it is applied
  virtual void committed(const Turn& turn, Sequence last) = 0;     // durable; before the replies
  virtual void reloaded(const core::State& state) = 0;             // built anew from the journal
  virtual void gap(BootTime now) = 0;                              // bmd did not run for a while
  virtual Sequence projected() const = 0;                          // what history has
};

struct LoopOptions {
  std::size_t batch_max = 4096;
  std::chrono::nanoseconds linger{std::chrono::microseconds(300)};
  std::uint64_t events_per_snapshot = 500'000;
};

class Loop {
 public:
  // `loaded` is what `journal.load()` gave. Journal, client, inbox, metrics and log outlive it.
  Loop(store::Journal& journal, const store::Loaded& loaded, LoopOptions options, Inbox& inbox,
       LoopClient& client, Metrics& metrics, wire::Log& log);

  // Turns until the inbox is closed and empty.
  void run();

  // A last snapshot, so that the next start is quick. REQUIRES: run() has returned.
  Result<void> checkpoint();

  const core::State& state() const { return state_; }
  Sequence last() const { return last_; }
  Incarnation incarnation() const { return incarnation_; }
  bool writable() const { return writable_; }  // any thread

 private:
  void turn(std::vector<Work>& work);
  void commit(Turn& turn);
  void reload();
  void try_to_write(Instant now);
  std::chrono::nanoseconds wait_for() const;
  void snapshot_if_due();

  store::Journal& journal_;
  const LoopOptions options_;
  Inbox& inbox_;
  LoopClient& client_;
  Metrics& metrics_;
  wire::Log& log_;
  core::State state_;
  Incarnation incarnation_;
  Sequence last_;
  Sequence snapshot_;
  std::atomic<bool> writable_{true};
  BootTime last_turn_{};
  BootTime last_tick_{};
  BootTime last_probe_{};
  std::size_t last_batch_ = 0;
};

// The state that a journal holds.
core::State replay(const store::Loaded& loaded);

}  // namespace bmgpu::controld
