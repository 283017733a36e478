// Who may talk to the market: accounts, tokens, nodes and sites. In memory, kept as documents.
//
// The market loop changes it; each change gives the documents that go into the same commit. The
// edge thread authenticates against it. Thread-safe.
//
// A token is a 256-bit secret; only its SHA-256 is kept. Names of live tokens are unique. A join
// token works once, for one node name, for at most ten minutes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "agent_core/liveness_state.h"
#include "api/server.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "store/journal.h"
#include "wire/hash.h"

namespace bmgpu::v1 {
class CountersRecord;
class TokenRecord;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

struct Account {
  AccountId id;
  std::string name;
  Instant created;
};

struct NodeEntry {
  NodeId id;
  std::string name;
  AccountId owner;
  SiteId site;
  std::string site_name;
  Instant created;       // when it joined first
  bool removed = false;  // its name is free; what it did stays in history
};

struct TokenSpec {
  api::Role role = api::Role::Tenant;
  std::string name;
  AccountId account;      // none: a new one; for NodeJoin: the caller's
  std::string node_name;  // NodeJoin
  std::string site_name;  // NodeJoin
  Duration lifetime;      // zero: no end; NodeJoin: ten minutes
};

// Everything of a token but its secret.
struct TokenView {
  std::uint64_t id = 0;
  std::string name;
  api::Role role = api::Role::Tenant;
  AccountId account;
  NodeId node;
  std::string node_name;
  Instant created;
  std::optional<Instant> expires;
  std::optional<Instant> last_used;
  bool revoked = false;
  bool used = false;  // NodeJoin: its node has joined
};

class Directory {
 public:
  using Documents = std::vector<store::Document>;

  // `secret_key`: the market's, 32 bytes.
  Directory(std::string secret_key, std::size_t tokens_max);
  ~Directory();

  // Replaces everything by what the journal holds.
  Result<void> load(store::Journal& journal);

  // The edge's question. `now` becomes the token's last use.
  Result<api::Identity> authenticate(std::string_view bearer, Instant now) const;

  // --- changes, by the market loop ----------------------------------------------------------
  struct Start {
    std::uint64_t number;  // orders desired sets across restarts
    Instant seen;          // until when nodes are known to have run: agent_core::StartRecord
  };
  // Another start of bmd on this database, whose journal ends at `journal_end`.
  Start count_start(Instant journal_end, Instant now, const agent_core::LivenessTimes& times,
                    Documents& documents);

  Result<TokenView> create_token(const TokenSpec& spec, AccountId caller, Instant now,
                                 Documents& documents);
  // Revoked already: unchanged.
  Result<TokenView> revoke_token(std::uint64_t id, Instant now, Documents& documents);

  // A node joins with token `join`: its entry and its bearer token. A known name is the same
  // node again, with the owner and site of `join`, if that is newer than its bearer; its earlier
  // bearers end.
  struct Joined {
    NodeEntry node;
    std::uint64_t token = 0;
    std::vector<std::uint64_t> ended_tokens;
  };
  Result<Joined> join(std::uint64_t join, const std::string& node_name, Instant now,
                      Documents& documents);

  // Frees the node's name and ends its bearers; returns these. REQUIRES: known, not removed.
  std::vector<std::uint64_t> remove_node(NodeId id, Instant now, Documents& documents);

  // Keeps last uses that moved by a minute or more; drops tokens that ended a day ago.
  Documents sweep(Instant now);

  // The text of the secret of token `id`, derived anew. REQUIRES: known.
  std::string secret_text(std::uint64_t id) const;

  // --- questions ----------------------------------------------------------------------------
  bool has_tokens() const;
  std::optional<TokenView> token(std::uint64_t id) const;
  std::optional<TokenView> token_by_name(std::string_view name, Instant now) const;  // live first
  std::vector<TokenView> tokens() const;                                             // by id
  std::optional<Account> account(AccountId id) const;
  std::optional<NodeEntry> node(NodeId id) const;  // removed ones too
  std::optional<NodeEntry> node_by_name(std::string_view name) const;
  std::vector<NodeEntry> nodes() const;  // by id, without removed ones

 private:
  struct TokenEntry;
  using Digest = wire::Sha256Digest;

  TokenEntry& add_token(v1::TokenRecord record, Documents& documents);
  const TokenEntry* find_live(std::string_view name, Instant now) const;
  wire::Sha256Digest secret_of(const v1::TokenRecord& record) const;
  const NodeEntry* find_node(std::string_view name) const;
  void keep_node(const NodeEntry& node, Documents& documents);
  bool joined_since(NodeId node, std::int64_t unix_ms) const;
  std::vector<std::uint64_t> end_bearers(NodeId node, Instant now, Documents& documents);
  AccountId add_account(const std::string& name, Instant now, Documents& documents);
  SiteId ensure_site(const std::string& name, Documents& documents);
  void keep_counters(Documents& documents) const;
  TokenView view(const TokenEntry& entry) const;

  const std::string secret_key_;
  const std::size_t tokens_max_;
  mutable std::shared_mutex mutex_;
  std::unique_ptr<v1::CountersRecord> counters_;
  std::map<std::uint64_t, std::unique_ptr<TokenEntry>> tokens_;
  std::map<Digest, TokenEntry*> by_secret_;
  std::map<AccountId, Account> accounts_;
  std::map<NodeId, NodeEntry> nodes_;
  std::map<std::string, SiteId, std::less<>> sites_;
};

}  // namespace bmgpu::controld
