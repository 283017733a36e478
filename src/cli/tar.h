// POSIX tar, as far as `cp` needs it: files, folders and symbolic links. Written as ustar with pax
// headers for what ustar cannot say; read as ustar, pax and GNU.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::cli {

struct TarEntry {
  enum class Kind { File, Folder, Link, HardLink, Pipe, Device, Other } kind = Kind::File;
  std::string path = {};
  std::string link_target = {};
  std::int64_t size = 0;  // of a file
  std::uint32_t mode = 0644;
  std::int64_t modified_unix_s = 0;  // written, not read
};

// Writes headers; the caller writes a file's bytes and then pad()s.
class TarWriter {
 public:
  // Called with pieces of the archive; its errors are handed through.
  using Sink = std::function<Result<void>(std::string_view bytes)>;
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  Result<void> header(const TarEntry& entry);
  Result<void> content(std::string_view bytes) { return sink_(bytes); }
  // After a file's bytes: fills the last block.
  Result<void> pad(std::int64_t size);
  // The end of the archive.
  Result<void> finish();

 private:
  Sink sink_;
};

// Where a read archive goes. Paths come as they stand in the archive: they are not to be trusted.
class TarTarget {
 public:
  virtual ~TarTarget() = default;
  virtual Result<void> begin(const TarEntry& entry) = 0;
  virtual Result<void> content(std::string_view bytes) = 0;
  virtual Result<void> end() = 0;
};

// Takes an archive in pieces of any size. A damaged one is DataLoss.
class TarReader {
 public:
  explicit TarReader(TarTarget& target) : target_(target) {}

  Result<void> take(std::string_view bytes);
  // After the last piece: DataLoss if the archive was cut short.
  Result<void> finish() const;

 private:
  Result<void> take_header(std::string_view block);
  Result<void> take_extension();
  Result<void> begin_content(std::int64_t size);

  enum class State { Header, Content, Extension, End };
  TarTarget& target_;
  State state_ = State::Header;
  std::string block_;         // a header that is not complete yet
  std::int64_t left_ = 0;     // of the content
  std::int64_t padding_ = 0;  // behind it
  char extension_kind_ = 0;   // 'x' pax, 'L' GNU long name, 'K' GNU long link
  std::string extension_;
  TarEntry next_;  // what extension headers said about the entry to come
  std::int64_t next_size_ = -1;
};

}  // namespace bmgpu::cli
