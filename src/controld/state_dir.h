// bmd's state directory: what lies in it beside the databases, and how it gets there.
//
//   journal.db history.db blobs/ logs/   tls/{ca.pem,ca.key,server.pem,server.key}
//   secret.key       32 random bytes that token secrets are derived from, 0600
//   operator.token   the first operator's token, 0600, written at the first start
//   market           this market's label, 16 hex digits
//   endpoint.json    where bmd listens now
//   lock             held while a bmd runs
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::controld {

class StateDir {
 public:
  // Creates what is missing and takes the lock; Unavailable if another bmd has it.
  static Result<StateDir> open(const std::string& path);
  StateDir(StateDir&& other) noexcept;
  StateDir& operator=(StateDir&&) = delete;
  ~StateDir();

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& secret_key() const { return secret_key_; }
  const std::string& market() const { return market_; }

  // Replaces a file as a whole, durably: temporary file, fsync, rename. `mode` as in chmod.
  Result<void> write(std::string_view name, std::string_view bytes, unsigned mode) const;
  Result<std::string> read(std::string_view name) const;
  bool has(std::string_view name) const;

 private:
  StateDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  Result<std::string> ensure_random(std::string_view name, std::string bytes, unsigned mode) const;

  std::string path_;
  std::string secret_key_;
  std::string market_;
  int lock_;
};

}  // namespace bmgpu::controld
