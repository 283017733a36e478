// Small whole files: read at once, replaced at once.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::cli {

// A file descriptor that closes itself. -1 = none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  int release();

 private:
  int number_ = -1;
};

// What a folder holds and a copy of it does not, with the reason: "a pipe".
struct LeftOut {
  std::string path;
  std::string why;

  bool operator==(const LeftOut&) const = default;
};

// "a pipe", "a socket", "a device"; "" for files, folders and links.
std::string special_file(mode_t mode);

// "cannot open x: No such file or directory; check the path", with the code that fits errno's
// value.
Error file_error(std::string_view doing, std::string_view path, int error_number);

// A file of at most `bytes_max` bytes.
Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

// Everything that `descriptor` has, at most `bytes_max` bytes; `name` is for the error.
Result<std::string> read_all(int descriptor, std::size_t bytes_max, std::string_view name);

Result<void> write_all(int descriptor, std::string_view bytes, std::string_view name);

// The names in an open folder, sorted; `name` is for the error.
Result<std::vector<std::string>> read_folder(int folder, std::string_view name);

// Writes a new file beside `path` and renames it over it; makes missing folders with mode 0700.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace bmgpu::cli
