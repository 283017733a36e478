#include "store/sqlite/wal_scan.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

namespace bmgpu::store {
namespace {

// The format is fixed by https://www.sqlite.org/fileformat2.html#walformat.
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // the lowest bit tells the checksum's byte order

using Bytes = std::span<const unsigned char>;

std::uint32_t word(Bytes bytes, std::size_t at, bool big_endian = true) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | bytes[at + (big_endian ? i : 3 - i)];
  }
  return value;
}

struct Checksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const Checksum&) const = default;

  void add(Bytes bytes, bool big_endian) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word(bytes, at, big_endian) + second;
      second += word(bytes, at + 4, big_endian) + first;
    }
  }
};

struct Header {
  bool big_endian = false;
  std::size_t page_bytes = 0;
  std::uint32_t salt_first = 0;
  std::uint32_t salt_second = 0;
  Checksum checksum;
};

std::optional<Header> read_header(Bytes bytes) {
  Header header;
  const std::uint32_t magic = word(bytes, 0);
  header.big_endian = (magic & 1) != 0;
  header.page_bytes = word(bytes, 8);
  header.salt_first = word(bytes, 16);
  header.salt_second = word(bytes, 20);
  header.checksum.add(bytes.first(24), header.big_endian);
  const bool sound = (magic & ~1U) == kMagic && header.page_bytes >= 512 &&
                     header.page_bytes <= 65536 &&
                     header.checksum == Checksum{word(bytes, 24), word(bytes, 28)};
  return sound ? std::optional(header) : std::nullopt;
}

// Reads frames one by one and knows whether what it has seen can come from a crash.
class Scan {
 public:
  explicit Scan(const Header& header) : header_(header), running_(header.checksum) {}

  void add(Bytes frame) {
    const bool of_this_log =
        word(frame, 8) == header_.salt_first && word(frame, 12) == header_.salt_second;
    const bool commits = word(frame, 4) != 0;
    if (intact_) {
      running_.add(frame.first(8), header_.big_endian);
      running_.add(frame.subspan(kFrameHeaderBytes), header_.big_endian);
      intact_ = of_this_log && word(frame, 0) != 0 &&
                running_ == Checksum{word(frame, 16), word(frame, 20)};
    }
    if (!intact_ && of_this_log) {
      damaged_ = damaged_ || commit_behind_;
      commit_behind_ = commit_behind_ || commits;
    }
  }

  bool damaged() const { return damaged_; }

 private:
  Header header_;
  Checksum running_;
  bool intact_ = true;          // every frame so far
  bool commit_behind_ = false;  // a commit lies at or behind the first bad frame
  bool damaged_ = false;        // and another frame behind that commit
};

Error damage(const std::string& path) {
  return {ErrorCode::DataLoss, path +
                                   "-wal is damaged: commits that were acknowledged cannot be "
                                   "read; restore the database from a backup"};
}

}  // namespace

Result<void> check_log(const std::string& path) {
  std::ifstream log(path + "-wal", std::ios::binary);
  std::vector<unsigned char> bytes(kHeaderBytes);
  if (!log.read(reinterpret_cast<char*>(bytes.data()), kHeaderBytes)) {
    return {};  // no log, or one whose header was never finished: nothing was committed to it
  }
  const std::optional<Header> header = read_header(bytes);
  if (!header) {
    // The header is synced before the first frame is written.
    return log.peek() == std::ifstream::traits_type::eof() ? Result<void>() : damage(path);
  }
  Scan scan(*header);
  bytes.resize(kFrameHeaderBytes + header->page_bytes);
  while (
      log.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()))) {
    scan.add(bytes);
  }
  return scan.damaged() ? damage(path) : Result<void>();
}

}  // namespace bmgpu::store
