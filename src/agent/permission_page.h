// <state_dir>/guard/permission: the node's permission as the guard publishes it, a page of memory
// that any process of the node may map and read without a system call.
//
// Layout (little-endian, 128 bytes, 8-byte words; unused bytes are zero):
//    0  magic           "BMPERM1\0"
//    8  lock            odd while the guard writes; +2 with every change
//   16  boot_id         36 characters and four zero bytes: of the boot whose CLOCK_BOOTTIME counts
//   56  guard_pid       of the guard that wrote last
//   64  until           CLOCK_BOOTTIME, ns: valid while now < until; 0 = never granted
//   72  sent            CLOCK_BOOTTIME, ns: when the answered heartbeat was sent
//   80  incarnation     of the market that gave the permission
//   88  grant           +1 whenever a permission follows one that had ended
//   96  last_sent       sequence of the newest heartbeat
//  104  last_answer     sequence of the newest answered heartbeat
//  112  connected       1 while the guard holds its connection
//  120  updated         CLOCK_BOOTTIME, ns, of the last change
// A reader reads `lock`, then the words, then `lock` again, and repeats unless both are equal and
// even. A page of another boot, of another magic, or shorter than 128 bytes permits nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent_core/guard_state.h"
#include "base/result.h"

namespace bmgpu::agent {

struct PublishedPermission {
  agent_core::Permission permission;
  std::int32_t guard_pid = 0;
  std::uint64_t last_sent_sequence = 0;
  std::uint64_t last_answer_sequence = 0;
  bool connected = false;
  std::int64_t updated_boottime_ns = 0;
  bool operator==(const PublishedPermission&) const = default;
};

std::string guard_dir(const std::string& state_dir);
std::string permission_path(const std::string& state_dir);

struct PageWords;  // the mapped bytes

// The guard's side. One writer at a time; not thread-safe.
class PermissionWriter {
 public:
  // Makes the file if it is missing. What a guard before it published stays until publish().
  static Result<PermissionWriter> open(const std::string& path, const std::string& boot_id);
  PermissionWriter(PermissionWriter&& other) noexcept;
  PermissionWriter& operator=(PermissionWriter&&) = delete;
  ~PermissionWriter();

  void publish(const PublishedPermission& published);

 private:
  explicit PermissionWriter(PageWords* page) : page_(page) {}
  PageWords* page_;
};

// The others' side. Thread-safe.
class PermissionReader {
 public:
  // NotFound: no guard has published here yet.
  static Result<PermissionReader> open(const std::string& path);
  PermissionReader(PermissionReader&& other) noexcept;
  PermissionReader& operator=(PermissionReader&&) = delete;
  ~PermissionReader();

  // Absent: of another boot, or the guard was stopped in the middle of a change.
  std::optional<PublishedPermission> read(const std::string& boot_id) const;

 private:
  explicit PermissionReader(const PageWords* page) : page_(page) {}
  const PageWords* page_;
};

}  // namespace bmgpu::agent
