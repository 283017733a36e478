#include "store/sqlite/watched_vfs.h"

#include <sqlite3.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace bmgpu::store {
namespace {

// What SQLite allocates for a file of ours; the real file lies behind it.
struct WatchedFile {
  sqlite3_file base;
  WatchedVfs::State* state;
  bool is_database;
  bool is_log;
  sqlite3_file* real;
};

WatchedFile& watched(sqlite3_file* file) { return *reinterpret_cast<WatchedFile*>(file); }
sqlite3_file* real(sqlite3_file* file) { return watched(file).real; }

void stop_on_failure(int rc, const char* what) { check(rc == SQLITE_OK, what); }

// A limit on the file's size or a quota is a full disk too, which SQLite reports as an I/O error.
bool is_full(sqlite3_file* file, int rc) {
  int error = 0;
  real(file)->pMethods->xFileControl(real(file), SQLITE_FCNTL_LAST_ERRNO, &error);
  return rc == SQLITE_FULL || error == EFBIG || error == EDQUOT || error == ENOSPC;
}

int on_close(sqlite3_file* file) {
  if (watched(file).is_log) {
    watched(file).state->unwritten.clear();  // no commit waits for it
  }
  return real(file)->pMethods->xClose(real(file));
}

constexpr std::size_t kChecksumBytes = WatchedVfs::kReservedBytes;

// The position is part of it, so that a page at another page's place is seen.
std::uint64_t page_checksum(std::string_view page, sqlite3_int64 offset) {
  return XXH3_64bits_withSeed(page.data(), page.size() - kChecksumBytes,
                              static_cast<std::uint64_t>(offset));
}

// SQLite reads and writes pages whole, and parts only of the first page's header.
bool is_page(const WatchedFile& file, int size, sqlite3_int64 offset) {
  return file.is_database && file.state->use == WatchedVfs::Use::Sole && size >= 512 &&
         offset % size == 0;
}

bool is_sound(std::string_view page, sqlite3_int64 offset) {
  std::uint64_t stored = 0;
  std::memcpy(&stored, page.data() + page.size() - kChecksumBytes, kChecksumBytes);
  // A page that the file was only extended by was never written.
  return stored == page_checksum(page, offset) ||
         page.find_first_not_of('\0') == std::string_view::npos;
}

// Notes whether the header at the start of the file is one of ours.
void look_at_header(const WatchedFile& file, std::string_view start) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr std::size_t kReservedAt = 20;
  if (file.is_database && file.state->use == WatchedVfs::Use::Sole && start.size() > kReservedAt &&
      start.starts_with(kMagic)) {
    file.state->is_foreign = start[kReservedAt] != WatchedVfs::kReservedBytes;
  }
}

int write_now(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  const int rc = real(file)->pMethods->xWrite(real(file), from, size, offset);
  if (rc == SQLITE_OK) {
    return SQLITE_OK;
  }
  check(is_full(file, rc), "store: the disk failed to write the database");
  return SQLITE_FULL;
}

// Writes what was kept back of the log. What finds no room is dropped: its commit fails.
int flush(sqlite3_file* file) {
  WatchedVfs::State& state = *watched(file).state;
  if (!watched(file).is_log || state.unwritten.empty()) {
    return SQLITE_OK;
  }
  int rc = SQLITE_OK;
  // SQLite's Unix layer takes less than 128 KiB at once.
  constexpr std::size_t kWriteMax = std::size_t{64} << 10;
  for (std::size_t at = 0; at < state.unwritten.size() && rc == SQLITE_OK; at += kWriteMax) {
    const std::size_t size = std::min(kWriteMax, state.unwritten.size() - at);
    rc = write_now(file, state.unwritten.data() + at, static_cast<int>(size),
                   state.unwritten_at + static_cast<sqlite3_int64>(at));
  }
  state.unwritten.clear();
  return rc;
}

int keep_back(sqlite3_file* file, std::string_view bytes, sqlite3_int64 offset) {
  constexpr std::size_t kUnwrittenMax = std::size_t{4} << 20;
  WatchedVfs::State& state = *watched(file).state;
  const bool follows =
      offset == state.unwritten_at + static_cast<sqlite3_int64>(state.unwritten.size());
  if (!follows || state.unwritten.size() + bytes.size() > kUnwrittenMax) {
    if (const int rc = flush(file); rc != SQLITE_OK) {
      return rc;
    }
  }
  if (state.unwritten.empty()) {
    state.unwritten_at = offset;
  }
  state.unwritten += bytes;
  return SQLITE_OK;
}

int on_read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) {
    return flushed;
  }
  const int rc = real(file)->pMethods->xRead(real(file), to, size, offset);
  check(rc != SQLITE_IOERR_READ, "store: the disk failed to read the database");
  const std::string_view bytes(static_cast<const char*>(to), static_cast<std::size_t>(size));
  if (rc == SQLITE_OK && offset == 0) {
    look_at_header(watched(file), bytes);
  }
  if (rc == SQLITE_OK && is_page(watched(file), size, offset) && !is_sound(bytes, offset)) {
    return SQLITE_IOERR_DATA;
  }
  return rc;
}

// The page with its checksum, in memory that lives until the next call.
const void* with_checksum(const WatchedFile& file, const void* from, int size,
                          sqlite3_int64 offset) {
  std::string& page = file.state->page;
  page.assign(static_cast<const char*>(from), static_cast<std::size_t>(size));
  const std::uint64_t sum = page_checksum(page, offset);
  std::memcpy(page.data() + page.size() - kChecksumBytes, &sum, kChecksumBytes);
  return page.data();
}

int on_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  const WatchedFile& target = watched(file);
  if (target.is_log && target.state->use == WatchedVfs::Use::Sole) {
    return keep_back(file, {static_cast<const char*>(from), static_cast<std::size_t>(size)},
                     offset);
  }
  if (is_page(target, size, offset)) {
    from = with_checksum(target, from, size, offset);
  }
  return write_now(file, from, size, offset);
}

int on_truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) {
    return flushed;
  }
  const int rc = real(file)->pMethods->xTruncate(real(file), size);
  if (rc == SQLITE_OK) {
    return SQLITE_OK;
  }
  check(is_full(file, rc), "store: the disk failed to resize the database");
  return SQLITE_FULL;
}

int on_sync(sqlite3_file* file, int flags) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) {
    return flushed;
  }
  const auto start = std::chrono::steady_clock::now();
  const int rc = real(file)->pMethods->xSync(real(file), flags);
  const auto took = std::chrono::steady_clock::now() - start;
  stop_on_failure(rc, "store: the disk failed to make a write durable");
  watched(file).state->latency.add(
      std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  return SQLITE_OK;
}

int on_size(sqlite3_file* file, sqlite3_int64* size) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) {
    return flushed;
  }
  return real(file)->pMethods->xFileSize(real(file), size);
}
int on_lock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xLock(real(file), level);
}
int on_unlock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}
int on_check_lock(sqlite3_file* file, int* taken) {
  return real(file)->pMethods->xCheckReservedLock(real(file), taken);
}
int on_control(sqlite3_file* file, int op, void* arg) {
  return real(file)->pMethods->xFileControl(real(file), op, arg);
}
int on_sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
int on_device(sqlite3_file* file) {
  return real(file)->pMethods->xDeviceCharacteristics(real(file));
}
int on_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** to) {
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, to);
}
int on_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
void on_shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
int on_shm_unmap(sqlite3_file* file, int remove) {
  return real(file)->pMethods->xShmUnmap(real(file), remove);
}

// Version 2 has no memory-mapped I/O, whose read errors would arrive as a signal.
constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_device,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

sqlite3_vfs* system_vfs() { return sqlite3_vfs_find(nullptr); }

int on_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  WatchedFile& opened = watched(file);
  opened.base.pMethods = nullptr;
  opened.state = static_cast<WatchedVfs::State*>(vfs->pAppData);
  opened.is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  opened.is_log = (flags & SQLITE_OPEN_WAL) != 0;
  opened.real = reinterpret_cast<sqlite3_file*>(&opened + 1);
  const int rc = system_vfs()->xOpen(system_vfs(), name, opened.real, flags, out_flags);
  if (opened.real->pMethods != nullptr) {
    opened.base.pMethods = &kMethods;
  }
  return rc;
}

// The system's own functions expect its own object.
int on_delete(sqlite3_vfs*, const char* name, int sync_directory) {
  return system_vfs()->xDelete(system_vfs(), name, sync_directory);
}
int on_access(sqlite3_vfs*, const char* name, int flags, int* result) {
  return system_vfs()->xAccess(system_vfs(), name, flags, result);
}
int on_full_path(sqlite3_vfs*, const char* name, int size, char* to) {
  return system_vfs()->xFullPathname(system_vfs(), name, size, to);
}

}  // namespace

WatchedVfs::WatchedVfs(Use use)
    : name_("bmgpu-" + std::to_string(reinterpret_cast<std::uintptr_t>(this))),
      vfs_(std::make_unique<sqlite3_vfs>(*system_vfs())) {
  state_.use = use;
  vfs_->szOsFile = static_cast<int>(sizeof(WatchedFile)) + system_vfs()->szOsFile;
  vfs_->pNext = nullptr;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = &state_;
  vfs_->xOpen = on_open;
  vfs_->xDelete = on_delete;
  vfs_->xAccess = on_access;
  vfs_->xFullPathname = on_full_path;
  stop_on_failure(sqlite3_vfs_register(vfs_.get(), 0), "store: SQLite takes no file system");
}

WatchedVfs::~WatchedVfs() { sqlite3_vfs_unregister(vfs_.get()); }

}  // namespace bmgpu::store
