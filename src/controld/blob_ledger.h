// Uploaded files: whose they are, how much each account has, and which ones go.
//
// A file is stored once, under blobs/SHA-256, whoever uploaded it. Each account that did has a
// claim on it, an empty file under blobs/accounts/NUMBER/SHA-256: only then it may name the file in
// a job, and only then the file counts as its own. So everything is right again after a kill -9:
// claims and files are read anew at each start. Files and claims that nobody has touched for as
// long as BlobLimits::kept are removed; those of live orders are touched by every sweep.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/server.h"
#include "base/time.h"

namespace bmgpu::controld {

struct BlobLimits {
  std::uint64_t files_per_account_max = 200'000;
  std::uint64_t bytes_per_account_max = std::uint64_t{64} << 30;
  std::chrono::hours kept{7 * 24};
};

// A file that a live order needs.
struct LiveBlob {
  AccountId account;
  std::string name;  // SHA-256 in lower-case hex
};

class BlobLedger final : public api::BlobQuota {
 public:
  // Counts what `directory` holds; claims whose file is gone are removed.
  BlobLedger(std::string directory, BlobLimits limits);

  struct Use {
    std::uint64_t files = 0;  // what is being received included
    std::uint64_t bytes = 0;
    bool operator==(const Use&) const = default;
  };
  Use use(AccountId account) const;

  Result<void> begin(AccountId account) override;
  Result<void> grow(AccountId account, std::uint64_t bytes) override;
  Result<void> keep(AccountId account, const std::string& name, std::uint64_t bytes,
                    const Rename& rename) override;
  void drop(AccountId account, std::uint64_t bytes) override;

  // Says that the account still wants the file: it is kept for another BlobLimits::kept. False: the
  // account has not uploaded it, or it is gone.
  bool touch(AccountId account, const std::string& name);

  // Touches what is live, then removes what nobody has touched for long; how many files went.
  // `now` is the clock that the files' times are of.
  std::size_t sweep(const std::vector<LiveBlob>& live, Instant now);

 private:
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  std::string folder(AccountId account) const;
  void take_back(AccountId account, std::uint64_t bytes);
  void sweep_claims(AccountId account, std::int64_t oldest_unix_s);
  Error full(const std::string& used, const std::string& max, const char* key) const;

  const std::string directory_;
  const BlobLimits limits_;
  mutable std::mutex mutex_;
  std::map<AccountId, Use> uses_;
};

}  // namespace bmgpu::controld
