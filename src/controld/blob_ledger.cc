#include "controld/blob_ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "wire/units.h"

namespace bmgpu::controld {
namespace {

namespace fs = std::filesystem;

std::optional<struct stat> facts_of(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? std::optional(facts) : std::nullopt;
}

bool touch_file(const std::string& path) {
  return ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

std::string size_text(std::uint64_t bytes) {
  return wire::print_size_short(static_cast<std::int64_t>(bytes));
}

// The accounts that have claims.
std::vector<AccountId> accounts_in(const std::string& directory) {
  std::vector<AccountId> accounts;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory + "/accounts", error)) {
    const std::string name = entry.path().filename();
    std::uint64_t number = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed == std::errc() && end == name.data() + name.size()) {
      accounts.push_back(AccountId(number));
    }
  }
  return accounts;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    std::error_code gone;
    if (entry.is_regular_file(gone)) {
      names.push_back(entry.path().filename());
    }
  }
  return names;
}

}  // namespace

BlobLedger::BlobLedger(std::string directory, BlobLimits limits)
    : directory_(std::move(directory)), limits_(limits) {
  for (const AccountId account : accounts_in(directory_)) {
    for (const std::string& name : names_in(folder(account))) {
      const std::optional<struct stat> facts = facts_of(file(name));
      if (!facts) {
        ::unlink((folder(account) + "/" + name).c_str());
        continue;
      }
      Use& use = uses_[account];
      ++use.files;
      use.bytes += static_cast<std::uint64_t>(facts->st_size);
    }
  }
}

std::string BlobLedger::folder(AccountId account) const {
  return directory_ + "/accounts/" + std::to_string(account.value());
}

BlobLedger::Use BlobLedger::use(AccountId account) const {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(account);
  return found == uses_.end() ? Use() : found->second;
}

Error BlobLedger::full(const std::string& used, const std::string& max, const char* key) const {
  return Error{ErrorCode::ResourceExhausted,
               "your uploaded files are " + used + " of at most " + max + " (" + key +
                   " of the market); a file goes " + std::to_string(limits_.kept.count()) +
                   " h after the last order that named it. Leave files out with a .bmignore file, "
                   "or ask the market's operator for more"};
}

Result<void> BlobLedger::begin(AccountId account) {
  const std::lock_guard lock(mutex_);
  Use& use = uses_[account];
  if (use.files >= limits_.files_per_account_max) {
    return full(std::to_string(use.files), std::to_string(limits_.files_per_account_max),
                "limits.blobs_per_account_max");
  }
  ++use.files;
  return {};
}

Result<void> BlobLedger::grow(AccountId account, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Use& use = uses_[account];
  if (use.bytes + bytes > limits_.bytes_per_account_max) {
    return full(size_text(use.bytes), size_text(limits_.bytes_per_account_max),
                "limits.blob_bytes_per_account_max");
  }
  use.bytes += bytes;
  return {};
}

void BlobLedger::drop(AccountId account, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  take_back(account, bytes);
}

void BlobLedger::take_back(AccountId account, std::uint64_t bytes) {
  Use& use = uses_[account];
  check(use.files > 0 && use.bytes >= bytes, "blob ledger: more is given back than was counted");
  --use.files;
  use.bytes -= bytes;
}

Result<void> BlobLedger::keep(AccountId account, const std::string& name, std::uint64_t bytes,
                              const Rename& rename) {
  const std::lock_guard lock(mutex_);
  const std::string claim = folder(account) + "/" + name;
  const bool is_known = touch_file(claim);
  if (!is_known) {
    std::error_code ignored;  // shows in the next call
    fs::create_directories(folder(account), ignored);
    const int made = ::open(claim.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (made < 0) {
      const bool is_full = errno == ENOSPC || errno == EDQUOT;
      return Error{is_full ? ErrorCode::ResourceExhausted : ErrorCode::Unavailable,
                   std::string("the server cannot keep the file: ") + std::strerror(errno)};
    }
    ::close(made);
  }
  const Result<void> renamed = rename();
  if (!renamed) {
    if (!is_known) {
      ::unlink(claim.c_str());
    }
    return renamed;
  }
  touch_file(file(name));  // never older than its claims
  if (is_known) {
    take_back(account, bytes);  // it was counted before
  }
  return {};
}

bool BlobLedger::touch(AccountId account, const std::string& name) {
  const std::lock_guard lock(mutex_);
  return touch_file(folder(account) + "/" + name) && touch_file(file(name));
}

std::size_t BlobLedger::sweep(const std::vector<LiveBlob>& live, Instant now) {
  const std::int64_t oldest = now.unix_ms() / 1000 - std::chrono::seconds(limits_.kept).count();
  for (const LiveBlob& blob : live) {
    const std::lock_guard lock(mutex_);
    touch_file(folder(blob.account) + "/" + blob.name);
    touch_file(file(blob.name));
  }
  for (const AccountId account : accounts_in(directory_)) {
    sweep_claims(account, oldest);
  }
  std::size_t removed = 0;
  for (const std::string& name : names_in(directory_)) {
    const std::lock_guard lock(mutex_);
    const std::optional<struct stat> facts = facts_of(file(name));
    const bool is_old = facts && facts->st_mtim.tv_sec < oldest;
    removed += is_old && ::unlink(file(name).c_str()) == 0 ? 1 : 0;
  }
  return removed;
}

void BlobLedger::sweep_claims(AccountId account, std::int64_t oldest_unix_s) {
  for (const std::string& name : names_in(folder(account))) {
    const std::lock_guard lock(mutex_);
    const std::string claim = folder(account) + "/" + name;
    const std::optional<struct stat> facts = facts_of(claim);
    const std::optional<struct stat> content = facts_of(file(name));
    const bool is_old = facts && content && facts->st_mtim.tv_sec < oldest_unix_s;
    if (is_old && ::unlink(claim.c_str()) == 0) {
      take_back(account, static_cast<std::uint64_t>(content->st_size));
    }
  }
}

}  // namespace bmgpu::controld
