// The market's disk: store's memory journal with the faults that a disk has. What is on it outlives
// the process that wrote it.
#pragma once

#include <memory>
#include <optional>

#include "store/journal.h"
#include "store/memory/memory_journal.h"

namespace bmgpu::sim {

// Durable is what a journal promises. The others are lies that checkers must find.
enum class DiskHonesty { Durable, AcknowledgesEarly };

class SimDisk {
 public:
  explicit SimDisk(DiskHonesty honesty) : honesty_(honesty) {}

  void set_full(bool full) { full_ = full; }
  bool is_full() const { return full_; }

  // REQUIRES: the one before it is gone. load() gives events that have been through the journal's
  // encoding, as a file would.
  std::unique_ptr<store::Journal> open();

 private:
  friend class SimJournal;
  const DiskHonesty honesty_;
  bool full_ = false;
  store::MemoryStorage storage_;
};

}  // namespace bmgpu::sim
