// One attempt's folder: <state_dir>/attempts/<lease>.<rank>.<attempt>/. It is the whole contract
// between the agent and a shim; both are level-triggered and both survive kill -9 of the other.
//
// Every file is replaced as a whole (temporary file, rename): a reader sees the old or the new one.
// On a full disk the want, the status and the memory still are, up to 4 KiB each: each has a spare
// beside it whose block is its own, written in place and exchanged with it. Only there a reader
// that is preempted while it reads, for two writes, could see a mixture.
// Thread-safe as far as one writer per file goes: the agent writes the order and the want, the shim
// the status and its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::v1 {
class AttemptStatus;
class ShimMemory;
class ShimOrder;
class ShimWant;
}  // namespace bmgpu::v1

namespace bmgpu::agent {

// Names an attempt; its text form is the folder's name, "lease-17.0.1".
struct AttemptName {
  std::string lease;  // "lease-17"
  std::uint32_t rank = 0;
  std::uint64_t attempt = 0;

  bool operator==(const AttemptName&) const = default;
  std::string text() const;
  // Empty if `text` is not one; ".." and '/' never are.
  static std::optional<AttemptName> parse(const std::string& text);
};

// "bm-<market>-<lease>.<rank>.<attempt>": the container of an attempt.
std::string container_name(const std::string& market, const AttemptName& name);

class AttemptDir {
 public:
  explicit AttemptDir(std::string path);
  AttemptDir(const std::string& state_dir, const AttemptName& name);

  const std::string& path() const { return path_; }
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string order_path() const { return file("spec.pb"); }
  std::string want_path() const { return file("want.pb"); }
  std::string status_path() const { return file("status.pb"); }
  std::string log_path() const { return file("log"); }
  std::string lock_path() const { return file("shim.pid"); }

  // 0700, with the spares; one that exists is fine. ResourceExhausted: the disk is full.
  Result<void> create() const;

  // NotFound if there is none yet; DataLoss if it does not parse.
  Result<v1::ShimOrder> read_order() const;
  Result<v1::ShimWant> read_want() const;
  Result<v1::AttemptStatus> read_status() const;
  Result<v1::ShimMemory> read_memory() const;

  Result<void> write_order(const v1::ShimOrder& order) const;
  Result<void> write_want(const v1::ShimWant& want) const;
  // Once ENDED is written it is durable (fsync); the states before it need no more than a rename,
  // because a power cut ends the job as well.
  Result<void> write_status(const v1::AttemptStatus& status) const;
  Result<void> write_memory(const v1::ShimMemory& memory) const;

  // True if a living shim holds the lock.
  bool shim_alive() const;

  // Unmounts and removes everything of the attempt, the log too. REQUIRES: no shim, no container.
  Result<void> remove() const;

 private:
  std::string path_;
};

// All attempt folders of a node, in the order of their names. A missing folder means none.
std::vector<AttemptName> list_attempts(const std::string& state_dir);

}  // namespace bmgpu::agent
