#include "controld/log_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/digest.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/records.pb.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::uint64_t kLinesPerMark = 128;
constexpr std::uint32_t kRecordBytesMax = 1 << 20;
constexpr std::uint32_t kEndMark = 0xffffffff;
constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kReadBytes = 256 * 1024;

Error disk_error(const std::string& path, const char* what) {
  return Error{ErrorCode::Unavailable, path + ": cannot " + what + ": " + std::strerror(errno)};
}

std::uint32_t checksum(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return static_cast<std::uint32_t>(digest.value() ^ (digest.value() >> 32));
}

void put_u32(std::string& out, std::uint32_t value) {
  for (int byte = 0; byte < 4; ++byte) {
    out += static_cast<char>((value >> (8 * byte)) & 0xff);
  }
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int byte = 3; byte >= 0; --byte) {
    value = (value << 8) | static_cast<unsigned char>(bytes[static_cast<std::size_t>(byte)]);
  }
  return value;
}

void append_record(std::string& out, std::string_view bytes) {
  put_u32(out, static_cast<std::uint32_t>(bytes.size()));
  put_u32(out, checksum(bytes));
  out.append(bytes);
}

// Walks the records of a file from an offset.
class RecordReader {
 public:
  RecordReader(int fd, std::uint64_t offset) : fd_(fd), at_(offset), held_from_(offset) {}

  enum class Found { Record, EndMark, Nothing };
  // `bytes` is valid until the next call. Nothing: end of file, or no whole record here.
  Found next(std::string_view& bytes) {
    if (!hold(kHeadBytes)) {
      return Found::Nothing;
    }
    const std::string_view head = view(kHeadBytes);
    const std::uint32_t size = get_u32(head);
    const std::uint32_t sum = get_u32(head.substr(4));
    if (size == kEndMark) {
      at_ += kHeadBytes;
      return sum == kEndMark ? Found::EndMark : Found::Nothing;
    }
    if (size > kRecordBytesMax || !hold(kHeadBytes + size)) {
      return Found::Nothing;
    }
    bytes = view(kHeadBytes + size).substr(kHeadBytes);
    if (checksum(bytes) != sum) {
      return Found::Nothing;
    }
    at_ += kHeadBytes + size;
    return Found::Record;
  }

  std::uint64_t offset() const { return at_; }

 private:
  bool hold(std::size_t count) {
    if (at_ + count <= held_from_ + held_.size()) {
      return true;
    }
    held_.resize(std::max(kReadBytes, count));
    held_from_ = at_;
    const ssize_t got = pread(fd_, held_.data(), held_.size(), static_cast<off_t>(at_));
    held_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return held_.size() >= count;
  }
  std::string_view view(std::size_t count) const {
    return std::string_view(held_).substr(at_ - held_from_, count);
  }

  const int fd_;
  std::uint64_t at_;
  std::uint64_t held_from_;
  std::string held_;
};

}  // namespace

struct LogStore::File {
  ~File() {
    if (fd >= 0) {
      close(fd);
    }
  }

  // Reads it through once: finds the header, marks and lines; cuts a torn end off.
  Result<void> scan(const std::string& path) {
    RecordReader reader(fd, 0);
    std::string_view bytes;
    v1::LogFileHeader header;
    if (reader.next(bytes) == RecordReader::Found::Record &&
        header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      node = NodeId(header.node());
    }
    end = node.is_none() ? 0 : reader.offset();
    for (bool more = end > 0; more;) {
      const std::uint64_t start = reader.offset();
      switch (reader.next(bytes)) {
        case RecordReader::Found::Record:
          note_line(start);
          end = reader.offset();
          break;
        case RecordReader::Found::EndMark:
          complete = true;
          end = reader.offset();
          more = false;
          break;
        case RecordReader::Found::Nothing:
          more = false;
          break;
      }
    }
    return ftruncate(fd, static_cast<off_t>(end)) == 0 ? Result<void>()
                                                       : disk_error(path, "cut the torn end off");
  }

  void note_line(std::uint64_t offset) {
    if (lines % kLinesPerMark == 0) {
      marks.push_back(offset);
    }
    ++lines;
  }

  LogKey key;
  NodeId node;
  int fd = -1;
  std::uint64_t end = 0;  // bytes of whole records
  std::uint64_t lines = 0;
  std::vector<std::uint64_t> marks;  // offset of line 1, 129, 257, …
  std::uint64_t next_dropped = 0;    // over the limit: the sequence that would come next
  bool complete = false;
  std::list<LogKey>::iterator recent;
};

LogStore::LogStore(std::string directory, LogLimits limits)
    : directory_(std::move(directory)), limits_(limits) {}

LogStore::~LogStore() = default;

Result<std::unique_ptr<LogStore>> LogStore::open(std::string directory, LogLimits limits) {
  std::unique_ptr<LogStore> store(new LogStore(std::move(directory), limits));
  const Result<void> measured = store->measure();
  if (!measured) {
    return measured.error();
  }
  return store;
}

Result<void> LogStore::measure() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    std::error_code gone;
    const std::uint64_t size = entry.file_size(gone);
    total_bytes_ += gone ? 0 : size;
  }
  if (error) {
    return Error{ErrorCode::Unavailable, directory_ + ": " + error.message()};
  }
  return {};
}

std::string LogStore::path(const LogKey& key) const {
  return directory_ + "/" + wire::to_text(key.lease) + "." + std::to_string(key.rank) + "." +
         std::to_string(key.attempt.value()) + ".log";
}

void LogStore::use(File& file) {
  recently_used_.splice(recently_used_.begin(), recently_used_, file.recent);
  while (files_.size() > limits_.open_files_max) {
    const auto oldest = std::find_if(recently_used_.rbegin(), recently_used_.rend(),
                                     [&](const LogKey& key) { return !unsynced_.contains(key); });
    if (oldest == recently_used_.rend() || *oldest == file.key) {
      return;
    }
    files_.erase(*oldest);
    recently_used_.erase(std::next(oldest).base());
  }
}

Result<LogStore::File*> LogStore::find(const LogKey& key) {
  const auto known = files_.find(key);
  if (known != files_.end()) {
    use(*known->second);
    return known->second.get();
  }
  auto file = std::make_unique<File>();
  file->key = key;
  file->fd = ::open(path(key).c_str(), O_RDWR | O_CLOEXEC);
  if (file->fd < 0) {
    return errno == ENOENT ? Result<File*>(nullptr) : disk_error(path(key), "open");
  }
  const Result<void> scanned = file->scan(path(key));
  if (!scanned) {
    return scanned.error();
  }
  if (file->node.is_none()) {  // not even its header was safe
    return nullptr;
  }
  recently_used_.push_front(key);
  file->recent = recently_used_.begin();
  File& placed = *(files_[key] = std::move(file));
  use(placed);
  return &placed;
}

Result<LogStore::File*> LogStore::ensure(const LogKey& key, NodeId node) {
  const Result<File*> found = find(key);
  if (!found || *found != nullptr) {
    return found;
  }
  v1::LogFileHeader header;
  header.set_lease(wire::to_text(key.lease));
  header.set_rank(key.rank);
  header.set_attempt(key.attempt.value());
  header.set_node(node.value());
  std::string bytes;
  append_record(bytes, header.SerializeAsString());
  const int fd = ::open(path(key).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    return disk_error(path(key), "create");
  }
  const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), 0);
  close(fd);
  if (written != static_cast<ssize_t>(bytes.size())) {
    return disk_error(path(key), "write");
  }
  directory_unsynced_ = true;
  total_bytes_ += bytes.size();
  return find(key);
}

Result<LogStore::Taken> LogStore::append(const LogKey& key, NodeId node,
                                         const v1::LogAppend& lines) {
  const Result<File*> found = ensure(key, node);
  if (!found) {
    return found.error();
  }
  File& file = **found;
  if (file.node != node) {
    return Error{ErrorCode::NotFound,
                 "the log of " + wire::to_text(key.lease) + " belongs to another node"};
  }
  std::string bytes;
  std::uint64_t next = std::max(file.lines + 1, file.next_dropped);
  std::vector<std::uint64_t> starts;
  bool dropping = file.next_dropped != 0 || file.end >= limits_.attempt_bytes_max;
  for (const v1::LogLine& line : lines.lines()) {
    if (file.complete || line.sequence() < next) {
      continue;
    }
    if (line.sequence() > next) {
      break;
    }
    ++next;
    if (dropping) {
      continue;
    }
    v1::LogLine kept = line;
    if (file.end + bytes.size() + line.ByteSizeLong() > limits_.attempt_bytes_max) {
      kept.set_stream(v1::LOG_STREAM_SYSTEM);
      kept.set_partial(false);
      kept.set_text("the log has reached its limit; later lines are not kept");
      dropping = true;
    }
    starts.push_back(file.end + bytes.size());
    append_record(bytes, kept.SerializeAsString());
  }
  const bool all_taken = lines.lines().empty() || lines.lines().rbegin()->sequence() < next;
  const bool completes = lines.complete() && !file.complete && all_taken;
  if (completes) {
    put_u32(bytes, kEndMark);
    put_u32(bytes, kEndMark);
  }
  if (!bytes.empty()) {
    unsynced_.insert(key);
    const ssize_t written =
        pwrite(file.fd, bytes.data(), bytes.size(), static_cast<off_t>(file.end));
    if (written != static_cast<ssize_t>(bytes.size())) {
      return disk_error(path(key), "write");
    }
    for (const std::uint64_t start : starts) {
      file.note_line(start);
    }
    file.end += bytes.size();
    file.complete = file.complete || completes;
    total_bytes_ += bytes.size();
  }
  if (dropping) {
    file.next_dropped = next;
  }
  return Taken{next, file.complete, bytes.size()};
}

Result<void> LogStore::sync() {
  for (const LogKey& key : unsynced_) {
    const auto file = files_.find(key);
    check(file != files_.end(), "log store: an unsynced file was closed");
    if (fdatasync(file->second->fd) != 0) {
      return disk_error(path(key), "make durable");
    }
  }
  unsynced_.clear();
  if (directory_unsynced_) {
    const int fd = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
      close(fd);
    }
    if (!synced) {
      return disk_error(directory_, "make durable");
    }
    directory_unsynced_ = false;
  }
  if (total_bytes_ > limits_.total_bytes_max) {
    drop_oldest();
  }
  return {};
}

void LogStore::drop_oldest() {
  struct Candidate {
    std::filesystem::file_time_type changed;
    std::string path;
    std::uint64_t bytes = 0;
  };
  std::vector<Candidate> candidates;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    std::error_code gone;
    Candidate candidate{entry.last_write_time(gone), entry.path().string(), entry.file_size(gone)};
    const bool open = std::any_of(files_.begin(), files_.end(), [&](const auto& known) {
      return path(known.first) == candidate.path && !known.second->complete;
    });
    if (!gone && !open) {
      candidates.push_back(std::move(candidate));
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) { return a.changed < b.changed; });
  for (const Candidate& candidate : candidates) {
    if (total_bytes_ <= limits_.total_bytes_max) {
      return;
    }
    if (unlink(candidate.path.c_str()) == 0) {
      total_bytes_ -= std::min(total_bytes_, candidate.bytes);
      std::erase_if(files_, [&](const auto& known) {
        const bool same = path(known.first) == candidate.path;
        if (same) {
          recently_used_.erase(known.second->recent);
        }
        return same;
      });
    }
  }
}

Result<v1::LogChunk> LogStore::read(const LogKey& key, std::uint64_t sequence,
                                    std::size_t bytes_max) {
  v1::LogChunk chunk;
  const Result<File*> found = find(key);
  if (!found) {
    return found.error();
  }
  if (*found == nullptr) {
    return chunk;
  }
  const File& file = **found;
  const std::uint64_t first = std::max<std::uint64_t>(sequence, 1);
  std::uint64_t line_number = 0;
  if (first <= file.lines) {
    const std::uint64_t mark = (first - 1) / kLinesPerMark;
    RecordReader reader(file.fd, file.marks[mark]);
    line_number = mark * kLinesPerMark;
    std::size_t bytes = 0;
    std::string_view record;
    while (bytes < bytes_max && line_number < file.lines) {
      if (reader.next(record) != RecordReader::Found::Record) {
        return Error{ErrorCode::DataLoss, path(key) + ": a record is damaged"};
      }
      if (++line_number >= first) {
        chunk.add_lines()->ParseFromArray(record.data(), static_cast<int>(record.size()));
        bytes += record.size();
      }
    }
  }
  chunk.set_complete(file.complete && (first > file.lines || line_number == file.lines));
  return chunk;
}

Result<bool> LogStore::exists(const LogKey& key) {
  const Result<File*> found = find(key);
  return found ? Result<bool>(*found != nullptr) : Result<bool>(found.error());
}

Result<std::uint64_t> LogStore::lines(const LogKey& key) {
  const Result<File*> found = find(key);
  if (!found) {
    return found.error();
  }
  return *found == nullptr ? std::uint64_t{0} : (*found)->lines;
}

}  // namespace bmgpu::controld
