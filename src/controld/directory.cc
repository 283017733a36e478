#include "controld/directory.h"

#include <algorithm>
#include <mutex>

#include "bmgpu/v1/records.pb.h"
#include "controld/secrets.h"
#include "controld/token_roles.h"
#include "controld/validate.h"

namespace bmgpu::controld {
namespace {

constexpr Duration kJoinLifetimeMax = minutes(10);
constexpr Duration kLifetimeMax = hours(24 * 365 * 10);
constexpr std::int64_t kUseKeptMs = 60'000;
constexpr Duration kKeptAfterEnd = hours(24);

const Error kUnauthenticated{ErrorCode::Unauthenticated,
                             "the token is not valid here: it is wrong, expired or revoked"};

template <typename Record>
void keep(Directory::Documents& documents, std::string kind, std::uint64_t id, AccountId account,
          const Record& record) {
  documents.push_back({std::move(kind), id, account, record.SerializeAsString()});
}

// Calls `use` for each record of a kind.
template <typename Record, typename Use>
Result<void> read(store::Journal& journal, std::string_view kind, Use use) {
  Result<std::vector<store::Document>> documents = journal.documents(kind);
  if (!documents) {
    return documents.error();
  }
  for (const store::Document& document : *documents) {
    Record record;
    if (!record.ParseFromString(document.bytes)) {
      return Error{ErrorCode::DataLoss, "a document of kind " + std::string(kind) +
                                            " is damaged: restore the database from a backup"};
    }
    use(record);
  }
  return {};
}

}  // namespace

struct Directory::TokenEntry {
  v1::TokenRecord record;
  mutable std::atomic<std::int64_t> last_used_unix_ms{0};

  bool live_at(Instant now) const {
    return !record.revoked() &&
           (record.expires_unix_ms() == 0 || record.expires_unix_ms() > now.unix_ms());
  }
};

Directory::Directory(std::string secret_key, std::size_t tokens_max)
    : secret_key_(std::move(secret_key)),
      tokens_max_(tokens_max),
      counters_(std::make_unique<v1::CountersRecord>()) {}

Directory::~Directory() = default;

Result<void> Directory::load(store::Journal& journal) {
  const std::unique_lock lock(mutex_);
  tokens_.clear();
  by_secret_.clear();
  accounts_.clear();
  nodes_.clear();
  sites_.clear();
  counters_->Clear();
  std::map<std::uint64_t, std::string> site_names;
  Result<void> done = read<v1::CountersRecord>(journal, "counter",
                                               [&](const auto& record) { *counters_ = record; });
  if (done) {
    done = read<v1::AccountRecord>(journal, "account", [&](const auto& record) {
      const AccountId id(record.id());
      accounts_[id] = {id, record.name(), Instant(record.created_unix_ms())};
    });
  }
  if (done) {
    done = read<v1::SiteRecord>(journal, "site", [&](const auto& record) {
      sites_[record.name()] = SiteId(record.id());
      site_names[record.id()] = record.name();
    });
  }
  if (done) {
    done = read<v1::NodeRecord>(journal, "node", [&](const auto& record) {
      const NodeId id(record.id());
      nodes_[id] = {id,
                    record.name(),
                    AccountId(record.account()),
                    SiteId(record.site()),
                    site_names[record.site()],
                    Instant(record.created_unix_ms()),
                    record.removed()};
    });
  }
  if (done) {
    done = read<v1::TokenRecord>(journal, "token", [&](const auto& record) {
      Documents unchanged;
      add_token(record, unchanged);
    });
  }
  return done;
}

Result<api::Identity> Directory::authenticate(std::string_view bearer, Instant now) const {
  const Digest digest = wire::sha256(bearer);
  const std::shared_lock lock(mutex_);
  const auto found = by_secret_.find(digest);
  if (found == by_secret_.end() || !found->second->live_at(now)) {
    return kUnauthenticated;
  }
  const TokenEntry& entry = *found->second;
  entry.last_used_unix_ms.store(now.unix_ms(), std::memory_order_relaxed);
  return api::Identity{entry.record.id(), AccountId(entry.record.account()),
                       api_role(entry.record.role()), NodeId(entry.record.node())};
}

Directory::Start Directory::count_start(Instant journal_end, Instant now,
                                        const agent_core::LivenessTimes& times,
                                        Documents& documents) {
  const std::unique_lock lock(mutex_);
  const agent_core::StartRecord before{Instant(counters_->started_unix_ms()),
                                       Instant(counters_->seen_unix_ms())};
  const agent_core::StartRecord start = agent_core::next_start(before, journal_end, now, times);
  counters_->set_starts(counters_->starts() + 1);
  counters_->set_started_unix_ms(start.started.unix_ms());
  counters_->set_seen_unix_ms(start.seen.unix_ms());
  keep_counters(documents);
  return {counters_->starts(), start.seen};
}

Result<TokenView> Directory::create_token(const TokenSpec& spec, AccountId caller, Instant now,
                                          Documents& documents) {
  const std::unique_lock lock(mutex_);
  const bool join = spec.role == api::Role::NodeJoin;
  const TokenEntry* same_name = find_live(spec.name, now);
  if (same_name != nullptr) {
    return Error{ErrorCode::AlreadyExists, "a live token is already named " + spec.name +
                                               "; revoke it or choose another name"};
  }
  if (!spec.account.is_none() && !accounts_.contains(spec.account)) {
    return Error{ErrorCode::NotFound, "there is no such account"};
  }
  if (tokens_.size() >= tokens_max_) {
    return Error{
        ErrorCode::ResourceExhausted,
        "the market has limits.tokens_max tokens; revoked and expired ones go after a day"};
  }
  const Duration most = join ? kJoinLifetimeMax : kLifetimeMax;
  if (spec.lifetime < Duration() || spec.lifetime > most) {
    return Error{ErrorCode::InvalidArgument,
                 join ? "a join token lives at most 10 minutes" : "a token lives at most 10 years"};
  }
  v1::TokenRecord record;
  record.set_name(spec.name);
  record.set_role(schema_role(spec.role));
  record.set_created_unix_ms(now.unix_ms());
  const Duration lifetime = join && spec.lifetime == Duration() ? kJoinLifetimeMax : spec.lifetime;
  record.set_expires_unix_ms(lifetime == Duration() ? 0 : (now + lifetime).unix_ms());
  record.set_node_name(spec.node_name);
  record.set_site(spec.site_name);
  const AccountId account = !spec.account.is_none() ? spec.account
                            : join                  ? caller
                                                    : add_account(spec.name, now, documents);
  record.set_account(account.value());
  return view(add_token(std::move(record), documents));
}

Result<TokenView> Directory::revoke_token(std::uint64_t id, Instant now, Documents& documents) {
  const std::unique_lock lock(mutex_);
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) {
    return Error{ErrorCode::NotFound, "there is no such token"};
  }
  v1::TokenRecord& record = found->second->record;
  if (record.revoked()) {
    return view(*found->second);
  }
  record.set_revoked(true);
  record.set_expires_unix_ms(now.unix_ms());
  keep(documents, "token", id, AccountId(record.account()), record);
  return view(*found->second);
}

Result<Directory::Joined> Directory::join(std::uint64_t join, const std::string& node_name,
                                          Instant now, Documents& documents) {
  const std::unique_lock lock(mutex_);
  const auto found = tokens_.find(join);
  check(found != tokens_.end(), "directory: an authenticated token is not known");
  v1::TokenRecord& record = found->second->record;
  if (record.used()) {
    return Error{ErrorCode::PermissionDenied,
                 "this join token was used already; ask the operator for a new one"};
  }
  if (record.node_name() != node_name) {
    return Error{ErrorCode::PermissionDenied,
                 "this join token is for the node " + record.node_name() + ", not " + node_name};
  }
  const NodeEntry* known = find_node(node_name);
  if (known != nullptr && joined_since(known->id, record.created_unix_ms())) {
    return Error{ErrorCode::AlreadyExists,
                 "a node named " + node_name + " has joined already since this token was made"};
  }
  record.set_used(true);
  keep(documents, "token", join, AccountId(record.account()), record);
  Joined joined;
  NodeEntry& entry = joined.node;
  if (known != nullptr) {
    entry = *known;
    joined.ended_tokens = end_bearers(entry.id, now, documents);
  } else {
    counters_->set_next_node(counters_->next_node() + 1);
    entry.id = NodeId(counters_->next_node());
    entry.name = node_name;
    entry.created = now;
  }
  entry.owner = AccountId(record.account());
  entry.site = ensure_site(record.site(), documents);
  entry.site_name = record.site();
  keep_node(entry, documents);
  v1::TokenRecord token;
  token.set_name("node-" + node_name);
  token.set_role(v1::ROLE_NODE);
  token.set_account(record.account());
  token.set_node(entry.id.value());
  token.set_node_name(node_name);
  token.set_created_unix_ms(now.unix_ms());
  joined.token = add_token(std::move(token), documents).record.id();
  return joined;
}

std::vector<std::uint64_t> Directory::remove_node(NodeId id, Instant now, Documents& documents) {
  const std::unique_lock lock(mutex_);
  NodeEntry node = nodes_.at(id);
  check(!node.removed, "directory: a node is removed twice");
  node.removed = true;
  keep_node(node, documents);
  return end_bearers(id, now, documents);
}

Directory::Documents Directory::sweep(Instant now) {
  const std::unique_lock lock(mutex_);
  Documents documents;
  for (auto at = tokens_.begin(); at != tokens_.end();) {
    TokenEntry& entry = *at->second;
    const AccountId account(entry.record.account());
    const std::int64_t expires = entry.record.expires_unix_ms();
    const std::int64_t used = entry.last_used_unix_ms.load(std::memory_order_relaxed);
    if (expires != 0 && now - Instant(expires) > kKeptAfterEnd) {
      documents.push_back({"token", at->first, account, ""});
      std::erase_if(by_secret_, [&](const auto& known) { return known.second == &entry; });
      at = tokens_.erase(at);
      continue;
    }
    if (used - entry.record.last_used_unix_ms() >= kUseKeptMs) {
      entry.record.set_last_used_unix_ms(used);
      keep(documents, "token", at->first, account, entry.record);
    }
    ++at;
  }
  return documents;
}

std::string Directory::secret_text(std::uint64_t id) const {
  const std::shared_lock lock(mutex_);
  const v1::TokenRecord& record = tokens_.at(id)->record;
  return token_text(token_kind(record.role()), secret_of(record));
}

bool Directory::has_tokens() const {
  const std::shared_lock lock(mutex_);
  return !tokens_.empty();
}

std::optional<TokenView> Directory::token(std::uint64_t id) const {
  const std::shared_lock lock(mutex_);
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? std::nullopt : std::optional(view(*found->second));
}

std::optional<TokenView> Directory::token_by_name(std::string_view name, Instant now) const {
  const std::shared_lock lock(mutex_);
  const TokenEntry* found = find_live(name, now);
  for (auto at = tokens_.begin(); found == nullptr && at != tokens_.end(); ++at) {
    found = at->second->record.name() == name ? at->second.get() : nullptr;
  }
  return found == nullptr ? std::nullopt : std::optional(view(*found));
}

std::vector<TokenView> Directory::tokens() const {
  const std::shared_lock lock(mutex_);
  std::vector<TokenView> all;
  for (const auto& [id, entry] : tokens_) {
    all.push_back(view(*entry));
  }
  return all;
}

std::optional<Account> Directory::account(AccountId id) const {
  const std::shared_lock lock(mutex_);
  const auto found = accounts_.find(id);
  return found == accounts_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<NodeEntry> Directory::node(NodeId id) const {
  const std::shared_lock lock(mutex_);
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<NodeEntry> Directory::node_by_name(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const NodeEntry* found = find_node(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::vector<NodeEntry> Directory::nodes() const {
  const std::shared_lock lock(mutex_);
  std::vector<NodeEntry> all;
  for (const auto& [id, node] : nodes_) {
    if (!node.removed) {
      all.push_back(node);
    }
  }
  return all;
}

// The secret is not random itself but derived from a random key and a random nonce, so that the
// record of a token can stay free of it and a repeated answer can still show it.
wire::Sha256Digest Directory::secret_of(const v1::TokenRecord& record) const {
  std::string what(token_kind(record.role()));
  what.append("|").append(std::to_string(record.id())).append("|").append(record.nonce());
  return hmac_sha256(secret_key_, what);
}

Directory::TokenEntry& Directory::add_token(v1::TokenRecord record, Documents& documents) {
  if (record.id() == 0) {
    counters_->set_next_token(counters_->next_token() + 1);
    record.set_id(counters_->next_token());
    record.set_nonce(wire::random_bytes(32));
    const std::string text = token_text(token_kind(record.role()), secret_of(record));
    const Digest digest = wire::sha256(text);
    record.set_secret_sha256(std::string(wire::as_bytes(digest)));
    keep(documents, "token", record.id(), AccountId(record.account()), record);
    keep_counters(documents);
  }
  auto entry = std::make_unique<TokenEntry>();
  entry->record = std::move(record);
  entry->last_used_unix_ms = entry->record.last_used_unix_ms();
  Digest digest{};
  check(entry->record.secret_sha256().size() == digest.size(), "directory: a token without hash");
  std::copy(entry->record.secret_sha256().begin(), entry->record.secret_sha256().end(),
            digest.begin());
  by_secret_[digest] = entry.get();
  return *(tokens_[entry->record.id()] = std::move(entry));
}

const Directory::TokenEntry* Directory::find_live(std::string_view name, Instant now) const {
  for (const auto& [id, entry] : tokens_) {
    if (entry->record.name() == name && entry->live_at(now) && !entry->record.used()) {
      return entry.get();
    }
  }
  return nullptr;
}

const NodeEntry* Directory::find_node(std::string_view name) const {
  for (const auto& [id, node] : nodes_) {
    if (node.name == name && !node.removed) {
      return &node;
    }
  }
  return nullptr;
}

void Directory::keep_node(const NodeEntry& node, Documents& documents) {
  nodes_[node.id] = node;
  v1::NodeRecord record;
  record.set_id(node.id.value());
  record.set_name(node.name);
  record.set_account(node.owner.value());
  record.set_site(node.site.value());
  record.set_created_unix_ms(node.created.unix_ms());
  record.set_removed(node.removed);
  keep(documents, "node", node.id.value(), node.owner, record);
}

bool Directory::joined_since(NodeId node, std::int64_t unix_ms) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const auto& token) {
    const v1::TokenRecord& record = token.second->record;
    return record.role() == v1::ROLE_NODE && record.node() == node.value() && !record.revoked() &&
           record.created_unix_ms() >= unix_ms;
  });
}

std::vector<std::uint64_t> Directory::end_bearers(NodeId node, Instant now, Documents& documents) {
  std::vector<std::uint64_t> ended;
  for (const auto& [id, entry] : tokens_) {
    v1::TokenRecord& record = entry->record;
    if (record.role() == v1::ROLE_NODE && record.node() == node.value() && !record.revoked()) {
      record.set_revoked(true);
      record.set_expires_unix_ms(now.unix_ms());
      keep(documents, "token", id, AccountId(record.account()), record);
      ended.push_back(id);
    }
  }
  return ended;
}

AccountId Directory::add_account(const std::string& name, Instant now, Documents& documents) {
  counters_->set_next_account(counters_->next_account() + 1);
  const AccountId id(counters_->next_account());
  accounts_[id] = {id, name, now};
  v1::AccountRecord record;
  record.set_id(id.value());
  record.set_name(name);
  record.set_created_unix_ms(now.unix_ms());
  keep(documents, "account", id.value(), id, record);
  keep_counters(documents);
  return id;
}

SiteId Directory::ensure_site(const std::string& name, Documents& documents) {
  const auto found = sites_.find(name);
  if (found != sites_.end()) {
    return found->second;
  }
  counters_->set_next_site(counters_->next_site() + 1);
  const SiteId id(counters_->next_site());
  sites_[name] = id;
  v1::SiteRecord record;
  record.set_id(id.value());
  record.set_name(name);
  keep(documents, "site", id.value(), AccountId(), record);
  return id;
}

void Directory::keep_counters(Documents& documents) const {
  keep(documents, "counter", 1, AccountId(), *counters_);
}

TokenView Directory::view(const TokenEntry& entry) const {
  const v1::TokenRecord& record = entry.record;
  TokenView view;
  view.id = record.id();
  view.name = record.name();
  view.role = api_role(record.role());
  view.account = AccountId(record.account());
  view.node = NodeId(record.node());
  view.node_name = record.node_name();
  view.created = Instant(record.created_unix_ms());
  if (record.expires_unix_ms() != 0) {
    view.expires = Instant(record.expires_unix_ms());
  }
  const std::int64_t used = entry.last_used_unix_ms.load(std::memory_order_relaxed);
  if (used != 0) {
    view.last_used = Instant(used);
  }
  view.revoked = record.revoked();
  view.used = record.used();
  return view;
}

}  // namespace bmgpu::controld
