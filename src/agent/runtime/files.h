// Small file operations with errors that name the file. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::agent {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

enum class Durability : bool { None, Fsync };

// "what /path: No such file or directory", with the code that errno stands for.
Error errno_error(const std::string& what, int error);

// NotFound if it does not exist; ResourceExhausted beyond `bytes_max`.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max = 16 * 1024 * 1024);
// Replaces the file as a whole: temporary file beside it, rename.
Result<void> write_file(const std::string& path, std::string_view bytes, int mode = 0600,
                        Durability durability = Durability::None);
// Removes what write_file() of a process that is gone left in `folder` (not in those below).
void remove_temporary_files(const std::string& folder);
// Writes into an existing file of a kernel file system (cgroup, proc), in one write.
Result<void> write_kernel_file(const std::string& path, std::string_view bytes);

// Makes the folder and those above it. One that exists is fine.
Result<void> make_dirs(const std::string& path, int mode = 0700);
// Removes a tree without following links and without leaving its file system. Missing is fine.
Result<void> remove_tree(const std::string& path);

// Unmounts (lazily) everything that is mounted below `folder`, innermost first. Best effort.
void detach_mounts_below(const std::string& folder);

// Lower-case text of /proc/sys/kernel/random/boot_id.
std::string read_boot_id();

}  // namespace bmgpu::agent
