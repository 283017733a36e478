#include "agent/permission_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "agent/runtime/files.h"

namespace bmgpu::agent {

using Word = std::atomic<std::uint64_t>;
static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

constexpr std::size_t kBootIdWords = 5;

// All words are atomic, so that reader and writer of two processes never race.
struct PageWords {
  Word magic;
  Word lock;
  Word boot_id[kBootIdWords];
  Word guard_pid;
  Word until;
  Word sent;
  Word incarnation;
  Word grant;
  Word last_sent;
  Word last_answer;
  Word connected;
  Word updated;
};
static_assert(sizeof(PageWords) == 128);
static_assert(offsetof(PageWords, until) == 64);

namespace {

constexpr std::uint64_t kMagic = 0x00314d5245504d42;  // "BMPERM1\0"
constexpr int kReadAttempts = 10'000;  // a change takes nanoseconds, unless the guard is preempted
constexpr int kSpins = 100;

std::array<std::uint64_t, kBootIdWords> boot_id_words(const std::string& boot_id) {
  std::array<std::uint64_t, kBootIdWords> words{};
  std::memcpy(words.data(), boot_id.data(), std::min(boot_id.size(), sizeof words));
  return words;
}

void* map(const Fd& fd, int protection) {
  void* page = mmap(nullptr, sizeof(PageWords), protection, MAP_SHARED, fd.get(), 0);
  return page == MAP_FAILED ? nullptr : page;
}

std::uint64_t get(const Word& word) { return word.load(std::memory_order_relaxed); }
void set(Word& word, std::uint64_t value) { word.store(value, std::memory_order_relaxed); }
std::int64_t to_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t to_word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

PublishedPermission copy(const PageWords& page) {
  PublishedPermission p;
  p.permission.until_boottime_ns = to_signed(get(page.until));
  p.permission.sent_boottime_ns = to_signed(get(page.sent));
  p.permission.incarnation = Incarnation(get(page.incarnation));
  p.permission.grant = get(page.grant);
  p.guard_pid = static_cast<std::int32_t>(get(page.guard_pid));
  p.last_sent_sequence = get(page.last_sent);
  p.last_answer_sequence = get(page.last_answer);
  p.connected = get(page.connected) != 0;
  p.updated_boottime_ns = to_signed(get(page.updated));
  return p;
}

}  // namespace

std::string guard_dir(const std::string& state_dir) { return state_dir + "/guard"; }
std::string permission_path(const std::string& state_dir) {
  return guard_dir(state_dir) + "/permission";
}

Result<PermissionWriter> PermissionWriter::open(const std::string& path,
                                                const std::string& boot_id) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid() || ftruncate(fd.get(), sizeof(PageWords)) != 0) {
    return errno_error("open " + path, errno);
  }
  auto* page = static_cast<PageWords*>(map(fd, PROT_READ | PROT_WRITE));
  if (page == nullptr) {
    return errno_error("map " + path, errno);
  }
  const auto words = boot_id_words(boot_id);
  bool same_boot = get(page->magic) == kMagic;
  for (std::size_t i = 0; i < kBootIdWords; ++i) {
    same_boot = same_boot && get(page->boot_id[i]) == words[i];
  }
  PermissionWriter writer(page);
  if (!same_boot) {
    writer.publish({});
    for (std::size_t i = 0; i < kBootIdWords; ++i) {
      set(page->boot_id[i], words[i]);
    }
    page->magic.store(kMagic, std::memory_order_release);
  }
  return writer;
}

PermissionWriter::PermissionWriter(PermissionWriter&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}

PermissionWriter::~PermissionWriter() {
  if (page_ != nullptr) {
    munmap(page_, sizeof(PageWords));
  }
}

void PermissionWriter::publish(const PublishedPermission& p) {
  // A guard that was killed in the middle of a change left the lock odd.
  const std::uint64_t odd = get(page_->lock) | 1;
  set(page_->lock, odd);
  std::atomic_thread_fence(std::memory_order_release);
  set(page_->guard_pid, static_cast<std::uint64_t>(p.guard_pid));
  set(page_->until, to_word(p.permission.until_boottime_ns));
  set(page_->sent, to_word(p.permission.sent_boottime_ns));
  set(page_->incarnation, p.permission.incarnation.value());
  set(page_->grant, p.permission.grant);
  set(page_->last_sent, p.last_sent_sequence);
  set(page_->last_answer, p.last_answer_sequence);
  set(page_->connected, p.connected ? 1 : 0);
  set(page_->updated, to_word(p.updated_boottime_ns));
  page_->lock.store(odd + 1, std::memory_order_release);
}

Result<PermissionReader> PermissionReader::open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!fd.valid() || fstat(fd.get(), &facts) != 0) {
    return errno_error("open " + path, errno);
  }
  if (facts.st_size < static_cast<off_t>(sizeof(PageWords))) {
    return Error{ErrorCode::NotFound, path + ": nothing published yet"};
  }
  const auto* page = static_cast<const PageWords*>(map(fd, PROT_READ));
  if (page == nullptr) {
    return errno_error("map " + path, errno);
  }
  return PermissionReader(page);
}

PermissionReader::PermissionReader(PermissionReader&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}

PermissionReader::~PermissionReader() {
  if (page_ != nullptr) {
    munmap(const_cast<PageWords*>(page_), sizeof(PageWords));
  }
}

std::optional<PublishedPermission> PermissionReader::read(const std::string& boot_id) const {
  const auto words = boot_id_words(boot_id);
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const std::uint64_t before = page_->lock.load(std::memory_order_acquire);
    const PublishedPermission published = copy(*page_);
    bool same_boot = get(page_->magic) == kMagic;
    for (std::size_t i = 0; i < kBootIdWords; ++i) {
      same_boot = same_boot && get(page_->boot_id[i]) == words[i];
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 != 0 || get(page_->lock) != before) {
      if (attempt >= kSpins) {
        std::this_thread::yield();
      }
      continue;
    }
    return same_boot ? std::optional<PublishedPermission>(published) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace bmgpu::agent
