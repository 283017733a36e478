#include "controld/orders.h"

#include <algorithm>

#include "bmgpu/v1/records.pb.h"
#include "controld/log_service.h"
#include "controld/views.h"
#include "wire/hash.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::chrono::seconds kKeepAlive{15};

Error not_found(std::string_view id) {
  return Error{ErrorCode::NotFound, "there is no order or lease " + std::string(id) +
                                        " of yours; bmcli ps --all lists them"};
}

std::optional<LogKey> log_of(const core::State& state, OrderId order, Instant now) {
  const std::optional<core::OrderView> found = core::find_order(state, order, now);
  if (!found || found->lease == nullptr || found->lease->attempts.empty()) {
    return std::nullopt;
  }
  return LogKey{found->lease->id, 0, found->lease->attempts.front().number};
}

std::optional<LogKey> log_of(const v1::Order& ended) {
  const Result<LeaseId> lease = wire::parse_id<LeaseId>(ended.lease());
  return lease ? std::optional(LogKey{*lease, 0, AttemptNumber(ended.attempt())}) : std::nullopt;
}

bool may_see(const api::Identity& caller, AccountId tenant) {
  return caller.role == api::Role::Operator || caller.account == tenant;
}

}  // namespace

struct Orders::Recent {
  AccountId tenant;
  v1::Order view;
  Sequence sequence;  // none until its commit
};

struct Orders::Watcher {
  wire::Encoding encoding;
  std::shared_ptr<api::Stream> stream;
};

Orders::Orders(const Directory& directory, store::Journal& journal, store::HistoryReader& history,
               LogService& logs, std::uint64_t job_bytes_per_account_max)
    : directory_(directory),
      journal_(journal),
      history_(history),
      logs_(logs),
      job_bytes_per_account_max_(job_bytes_per_account_max) {}

Orders::~Orders() = default;

Result<void> Orders::load(const core::State& state) {
  jobs_.clear();
  job_bytes_.clear();
  progress_.clear();
  recent_.clear();
  const auto load_job = [&](OrderId order, AccountId tenant) -> Result<void> {
    const Result<std::optional<store::Document>> kept =
        journal_.find_document("job", order.value());
    if (!kept) {
      return kept.error();
    }
    v1::JobRecord job;
    if (!*kept || !job.ParseFromString((*kept)->bytes)) {
      return Error{ErrorCode::DataLoss, "the job of " + wire::to_text(order) +
                                            " is damaged: restore the database from a backup"};
    }
    add_job(order, tenant, std::move(job));
    return {};
  };
  for (const auto& [id, order] : state.waiting) {
    const Result<void> loaded = load_job(id, order.tenant);
    if (!loaded) {
      return loaded;
    }
  }
  for (const auto& [id, lease] : state.leases) {
    const Result<void> loaded = load_job(lease.order, lease.tenant);
    if (!loaded) {
      return loaded;
    }
    if (!lease.attempts.empty()) {
      logs_.expect({id, 0, lease.attempts.front().number},
                   lease.allocations.back().ranks.front().node);
    }
  }
  return {};
}

void Orders::observe(Turn& turn, const core::Event& event) {
  const core::State& state = turn.state();
  if (const auto* queued = std::get_if<core::OrderQueued>(&event)) {
    turn.touch(queued->order.id);
  } else if (const auto* granted = std::get_if<core::LeaseGranted>(&event)) {
    turn.touch(granted->lease.order);
    expect_log(turn, granted->lease, granted->lease.attempts);
  } else if (const auto* started = std::get_if<core::LeaseStarted>(&event)) {
    const core::Lease& lease = state.leases.at(started->id);
    turn.touch(lease.order);
    expect_log(turn, lease, started->attempts);
  } else if (const auto* given = std::get_if<core::JobGiven>(&event)) {
    const core::Lease& lease = state.leases.at(given->id);
    turn.touch(lease.order);
    expect_log(turn, lease, given->attempts);
  } else if (const auto* moved = std::get_if<core::LeaseMoved>(&event)) {
    turn.touch(state.leases.at(moved->id).order);
  } else if (const auto* cancelled = std::get_if<core::LeaseCancelled>(&event)) {
    turn.touch(state.leases.at(cancelled->id).order);
  } else if (const auto* running = std::get_if<core::LeaseRunning>(&event)) {
    turn.touch(state.leases.at(running->id).order);
  } else if (const auto* extended = std::get_if<core::LeaseExtended>(&event)) {
    turn.touch(state.leases.at(extended->id).order);
  } else if (const auto* ending = std::get_if<core::LeaseEnding>(&event)) {
    turn.touch(state.leases.at(ending->id).order);
  } else if (const auto* over = std::get_if<core::LeaseEnded>(&event)) {
    const core::Lease& lease = state.leases.at(over->id);
    const OrderContext context{directory_, job(lease.order), ""};
    ended(turn, lease.order, ended_view(state, lease, *over, context, turn.now()));
    if (lease.attempts.empty()) {
      no_log(turn, lease.order);
    } else {
      logs_.ended({lease.id, 0, lease.attempts.front().number});
    }
  } else if (const auto* closed = std::get_if<core::OrderClosed>(&event)) {
    const core::Order& order = state.waiting.at(closed->id);
    const OrderContext context{directory_, job(order.id), ""};
    ended(turn, order.id, closed_view(state, order, *closed, context, turn.now()));
    no_log(turn, order.id);
  }
}

// What waits for the order's log hears where it is; a booked lease's comes with its start.
void Orders::expect_log(Turn& turn, const core::Lease& lease,
                        const std::vector<core::Attempt>& attempts) {
  if (attempts.empty()) {
    return;
  }
  const LogKey key{lease.id, 0, attempts.front().number};
  logs_.expect(key, lease.allocations.back().ranks.front().node);
  const auto [first, last] = lease_waiters_.equal_range(lease.order);
  for (auto at = first; at != last; ++at) {
    turn.after_commit([use = at->second, key](const Result<void>& durable) {
      use(durable ? std::optional(key) : std::nullopt);
    });
  }
  lease_waiters_.erase(first, last);
}

void Orders::no_log(Turn& turn, OrderId order) {
  const auto [first, last] = lease_waiters_.equal_range(order);
  for (auto at = first; at != last; ++at) {
    turn.after_commit([use = at->second](const Result<void>&) { use(std::nullopt); });
  }
  lease_waiters_.erase(first, last);
}

void Orders::ended(Turn& turn, OrderId order, v1::Order view) {
  turn.touch(order);
  const AccountId tenant = wire::parse_id<AccountId>(view.account()).value();
  v1::JobRecord names;  // command and environment go with the order
  names.set_image_asked(view.image());
  names.mutable_job()->set_name(view.name());
  turn.put({"job", order.value(), tenant, names.SerializeAsString()});
  const auto job = jobs_.find(order);
  if (job != jobs_.end()) {
    job_bytes_.at(tenant) -= job->second->ByteSizeLong();
    jobs_.erase(job);
  }
  progress_.erase(order);
  recent_[order] = {tenant, std::move(view), Sequence()};
}

void Orders::keep_job(Turn& turn, OrderId order, AccountId tenant, v1::JobRecord job) {
  turn.put({"job", order.value(), tenant, job.SerializeAsString()});
  add_job(order, tenant, std::move(job));
}

void Orders::add_job(OrderId order, AccountId tenant, v1::JobRecord job) {
  job_bytes_[tenant] += job.ByteSizeLong();
  jobs_[order] = std::make_unique<v1::JobRecord>(std::move(job));
}

Result<void> Orders::check_room(AccountId account, const v1::JobSpec& job) const {
  const auto found = job_bytes_.find(account);
  const std::uint64_t used = found == job_bytes_.end() ? 0 : found->second;
  if (used + job.ByteSizeLong() <= job_bytes_per_account_max_) {
    return {};
  }
  return Error{ErrorCode::ResourceExhausted,
               "the commands and lists of files of your live orders are " + std::to_string(used) +
                   " bytes of at most " + std::to_string(job_bytes_per_account_max_) +
                   " (limits.job_bytes_per_account_max of the market); stop one, wait for an end, "
                   "or send fewer files"};
}

std::vector<LiveBlob> Orders::live_blobs(const core::State& state) const {
  std::vector<LiveBlob> live;
  for (const auto& [order, record] : jobs_) {
    const auto waiting = state.waiting.find(order);
    const AccountId account = waiting != state.waiting.end()
                                  ? waiting->second.tenant
                                  : state.leases.at(LeaseId(order.value())).tenant;
    for (const v1::WorkFile& file : record->job().workdir()) {
      if (!file.sha256().empty()) {
        live.push_back({account, wire::hex(file.sha256())});
      }
    }
  }
  return live;
}

const v1::JobRecord* Orders::job(OrderId order) const {
  const auto found = jobs_.find(order);
  return found == jobs_.end() ? nullptr : found->second.get();
}

void Orders::set_progress(Turn& turn, OrderId order, std::string progress) {
  std::string& known = progress_[order];
  if (known != progress) {
    known = std::move(progress);
    turn.touch(order);
  }
}

Result<OrderId> Orders::resolve(const core::State& state, const api::Identity& caller,
                                std::string_view id) const {
  const Result<wire::AnyId> parsed = wire::parse_any_id(id);
  if (!parsed) {
    return parsed.error();
  }
  const auto* order = std::get_if<OrderId>(&*parsed);
  const auto* lease = std::get_if<LeaseId>(&*parsed);
  if (order == nullptr && lease == nullptr) {
    return Error{ErrorCode::InvalidArgument,
                 "'" + std::string(id) + "' is not the id of an order or a lease"};
  }
  // A lease has the number of its order.
  const OrderId wanted = order != nullptr ? *order : OrderId(lease->value());
  const auto leased = state.leases.find(LeaseId(wanted.value()));
  if (leased != state.leases.end()) {
    return may_see(caller, leased->second.tenant) ? Result<OrderId>(leased->second.order)
                                                  : Result<OrderId>(not_found(id));
  }
  const auto waiting = state.waiting.find(wanted);
  if (waiting != state.waiting.end()) {
    return may_see(caller, waiting->second.tenant) && order != nullptr
               ? Result<OrderId>(wanted)
               : Result<OrderId>(not_found(id));
  }
  const auto recent = recent_.find(wanted);
  if (recent != recent_.end()) {
    return may_see(caller, recent->second.tenant) ? Result<OrderId>(wanted)
                                                  : Result<OrderId>(not_found(id));
  }
  const Result<std::optional<store::HistoryOrder>> over = history_.find_order(wanted);
  if (!over) {
    return over.error();
  }
  const bool has = *over && (order != nullptr || !(*over)->lease.is_none());
  return has && may_see(caller, (*over)->account) ? Result<OrderId>(wanted)
                                                  : Result<OrderId>(not_found(id));
}

Result<v1::Order> Orders::view(const core::State& state, OrderId order, Instant now) const {
  const auto progress = progress_.find(order);
  const OrderContext context{directory_, job(order),
                             progress == progress_.end() ? std::string() : progress->second};
  const std::optional<core::OrderView> live = core::find_order(state, order, now);
  if (live && live->lease != nullptr) {
    return lease_view(state, *live->lease, context, now);
  }
  if (live) {
    const std::string why = live->waiting_reason ? live->waiting_reason->detail : "";
    return waiting_view(state, *live->waiting, why, context, now);
  }
  Result<std::optional<v1::Order>> over = ended_order(order);
  if (!over) {
    return over.error();
  }
  check(over->has_value(), "orders: a resolved order is nowhere");
  (*over)->set_now_unix_ms(now.unix_ms());
  return std::move(**over);
}

Result<std::optional<v1::Order>> Orders::ended_order(OrderId order) const {
  const auto recent = recent_.find(order);
  if (recent != recent_.end()) {
    return std::optional(recent->second.view);
  }
  const Result<std::optional<store::HistoryOrder>> kept = history_.find_order(order);
  if (!kept) {
    return kept.error();
  }
  if (!*kept) {
    return std::optional<v1::Order>();
  }
  v1::Order view = history_view(**kept, directory_);
  add_names(view, order);
  return std::optional(std::move(view));
}

void Orders::add_names(v1::Order& order, OrderId id) const {
  const Result<std::optional<store::Document>> kept = journal_.find_document("job", id.value());
  v1::JobRecord names;
  if (kept && *kept && names.ParseFromString((*kept)->bytes)) {
    order.set_image(names.image_asked());
    order.set_name(names.job().name());
  }
}

Result<std::vector<v1::Order>> Orders::list(const core::State& state, const api::Identity& caller,
                                            bool all, std::size_t limit, Instant now) const {
  const bool everyone = caller.role == api::Role::Operator;
  const AccountId account = everyone ? AccountId() : caller.account;
  std::map<OrderId, v1::Order, std::greater<>> found;
  if (all) {
    const Result<std::vector<store::HistoryOrder>> over = history_.ended_orders(account, limit);
    if (!over) {
      return over.error();
    }
    for (const store::HistoryOrder& order : *over) {
      add_names(found[order.order] = history_view(order, directory_), order.order);
    }
    for (const auto& [id, recent] : recent_) {
      if (may_see(caller, recent.tenant)) {
        found[id] = recent.view;
      }
    }
  }
  std::vector<OrderId> live = core::live_orders(state, account);
  const std::size_t skipped = live.size() - std::min(live.size(), limit);
  for (std::size_t i = skipped; i < live.size(); ++i) {
    Result<v1::Order> order = view(state, live[i], now);
    if (!order) {
      return order.error();
    }
    found[live[i]] = std::move(*order);
  }
  std::vector<v1::Order> orders;
  for (auto at = found.begin(); at != found.end() && orders.size() < limit; ++at) {
    at->second.set_now_unix_ms(now.unix_ms());
    orders.push_back(std::move(at->second));
  }
  return orders;
}

void Orders::watch(OrderId order, wire::Encoding encoding, std::shared_ptr<api::Stream> stream,
                   const core::State& state, Instant now) {
  const Result<v1::Order> shown = view(state, order, now);
  if (!shown) {
    stream->finish(shown.error());
    return;
  }
  stream->send(wire::encode(encoding, *shown));
  if (is_over(state, order)) {
    stream->finish({});
    return;
  }
  watchers_[order].push_back({encoding, std::move(stream)});
}

void Orders::when_leased(OrderId order, const core::State& state,
                         std::function<void(std::optional<LogKey>)> use) {
  const auto lease = state.leases.find(LeaseId(order.value()));
  const bool starts_later = lease != state.leases.end() && lease->second.attempts.empty();
  if (state.waiting.contains(order) || starts_later) {
    lease_waiters_.emplace(order, std::move(use));
  } else if (is_over(state, order)) {
    const Result<std::optional<v1::Order>> over = ended_order(order);
    use(over && *over ? log_of(**over) : std::nullopt);
  } else {
    use(log_of(state, order, state.last_stamp));
  }
}

bool Orders::is_over(const core::State& state, OrderId order) const {
  return !state.waiting.contains(order) && !state.leases.contains(LeaseId(order.value()));
}

void Orders::committed(const Turn& turn, Sequence last) {
  const auto tell = [&](OrderId order, std::vector<Watcher>& watchers) {
    const Result<v1::Order> shown = view(turn.state(), order, turn.now());
    if (shown) {
      send(watchers, *shown);
    }
    return watchers.empty();
  };
  for (const OrderId order : turn.touched_orders()) {
    const auto recent = recent_.find(order);
    if (recent != recent_.end() && recent->second.sequence.is_none()) {
      recent->second.sequence = last;
    }
    const auto found = watchers_.find(order);
    if (found != watchers_.end() && tell(order, found->second)) {
      watchers_.erase(found);
    }
  }
  if (turn.boot() - last_keep_alive_ >= kKeepAlive) {
    last_keep_alive_ = turn.boot();
    for (auto at = watchers_.begin(); at != watchers_.end();) {
      at = tell(at->first, at->second) ? watchers_.erase(at) : std::next(at);
    }
  }
}

void Orders::projected(Sequence applied) {
  std::erase_if(recent_, [&](const auto& entry) {
    return !entry.second.sequence.is_none() && entry.second.sequence <= applied;
  });
}

void Orders::send(std::vector<Watcher>& watchers, const v1::Order& view) {
  const bool over = view.state() == v1::ORDER_STATE_ENDED;
  std::erase_if(watchers, [&](const Watcher& watcher) {
    const bool alive = watcher.stream->send(wire::encode(watcher.encoding, view));
    if (over) {
      watcher.stream->finish({});
    }
    return over || !alive;
  });
}

}  // namespace bmgpu::controld
