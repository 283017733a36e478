#include "agent/attempt_table.h"

#include <algorithm>

#include "agent/event_loop.h"
#include "agent/host/facts.h"
#include "agent/runtime/runtime.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/ids.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using agent_core::Phase;
using std::chrono::milliseconds;

// A started shim takes its lock within milliseconds; under load it gets this long.
constexpr milliseconds kShimStartLimit{3000};
constexpr milliseconds kShimRestMin{1000};
constexpr milliseconds kShimRestMax{60'000};

Phase phase_of(const v1::AttemptStatus& status) {
  switch (status.phase()) {
    case v1::ATTEMPT_PHASE_RUNNING:
      return Phase::Running;
    case v1::ATTEMPT_PHASE_ENDING:
      return Phase::Ending;
    case v1::ATTEMPT_PHASE_ENDED:
      return Phase::Ended;
    default:
      return Phase::Preparing;
  }
}

void name_status(const v1::AttemptSpec& spec, v1::AttemptStatus& status) {
  status.set_lease(spec.lease());
  status.set_rank(spec.rank());
  status.set_attempt(spec.attempt());
  status.set_incarnation(spec.incarnation());
}

std::string log_complete_path(const AttemptDir& dir) { return dir.file("log.complete"); }

}  // namespace

bool Attempt::ended() const { return status->phase() == v1::ATTEMPT_PHASE_ENDED; }

std::optional<agent_core::AttemptKey> key_of(const AttemptName& name) {
  const Result<LeaseId> lease = wire::parse_id<LeaseId>(name.lease);
  if (!lease || name.attempt == 0) {
    return std::nullopt;
  }
  return agent_core::AttemptKey{*lease, name.rank, AttemptNumber(name.attempt)};
}

AttemptName name_of(const v1::AttemptSpec& spec) {
  return {spec.lease(), spec.rank(), spec.attempt()};
}

Result<std::unique_ptr<AttemptTable>> AttemptTable::create(EventLoop& loop, wire::Log& log,
                                                           std::string state_dir,
                                                           std::vector<std::string> shim_program,
                                                           Callbacks callbacks) {
  std::unique_ptr<AttemptTable> table(new AttemptTable(
      loop, log, std::move(state_dir), std::move(shim_program), std::move(callbacks)));
  AttemptTable* raw = table.get();
  AttemptWatch::Callbacks notices;
  notices.on_status = [raw](const Key& key) {
    const auto at = raw->attempts_.find(key);
    if (at != raw->attempts_.end()) {
      raw->read_status(key, at->second);
    }
  };
  notices.on_log = raw->callbacks_.on_log;
  notices.on_overflow = [raw] { raw->look(); };
  Result<std::unique_ptr<AttemptWatch>> watch = AttemptWatch::create(loop, std::move(notices));
  if (!watch) {
    return watch.error();
  }
  raw->watch_ = std::move(*watch);
  return table;
}

AttemptTable::AttemptTable(EventLoop& loop, wire::Log& log, std::string state_dir,
                           std::vector<std::string> shim_program, Callbacks callbacks)
    : loop_(loop),
      log_(log),
      state_dir_(std::move(state_dir)),
      shim_program_(std::move(shim_program)),
      callbacks_(std::move(callbacks)) {}

AttemptTable::~AttemptTable() = default;

void AttemptTable::load() {
  for (const AttemptName& name : list_attempts(state_dir_)) {
    load_one(name);
  }
}

void AttemptTable::load_one(const AttemptName& name) {
  const std::optional<Key> key = key_of(name);
  if (!key) {
    return;
  }
  Attempt attempt{name,  AttemptDir(state_dir_, name),
                  {},    std::make_unique<v1::AttemptStatus>(),
                  {},    false,
                  true,  false,
                  false, {},
                  0};
  const Result<v1::ShimOrder> order = attempt.dir.read_order();
  if (!order) {
    // The agent before this one died between making the folder and writing the order: no shim was
    // started, and bmd still wants the attempt, or no longer.
    log_.warning("an attempt without an order is removed",
                 {{"attempt", name.text()}, {"why", order.error().message}});
    if (const Result<void> removed = attempt.dir.remove(); !removed) {
      log_.error("it cannot be removed", {{"why", removed.error().message}});
    }
    return;
  }
  const v1::AttemptSpec& spec = order->spec();
  attempt.gpu_uuids.assign(spec.gpu_uuids().begin(), spec.gpu_uuids().end());
  name_status(spec, *attempt.status);
  attempt.status->set_phase(v1::ATTEMPT_PHASE_PREPARING);
  attempt.want_lease_end = Instant(spec.lease_end_unix_ms());
  if (const Result<v1::ShimWant> want = attempt.dir.read_want(); want) {
    attempt.want_stop = want->stop();
    if (want->lease_end_unix_ms() != 0) {
      attempt.want_lease_end = Instant(want->lease_end_unix_ms());
    }
  }
  if (Result<v1::AttemptStatus> status = attempt.dir.read_status(); status) {
    *attempt.status = std::move(*status);
  }
  attempt.shim_alive = attempt.dir.shim_alive();
  attempt.log_complete = read_file(log_complete_path(attempt.dir)).ok();
  attempt.status->set_log_complete(attempt.log_complete);
  log_.info("attempt taken up", {{"attempt", name.text()},
                                 {"phase", v1::AttemptPhase_Name(attempt.status->phase())},
                                 {"shim_alive", attempt.shim_alive}});
  watch(*key, attempts_.emplace(*key, std::move(attempt)).first->second);
}

void AttemptTable::watch(const Key& key, const Attempt& attempt) {
  if (const Result<void> added = watch_->add(key, attempt.dir.path()); !added) {
    log_.warning("an attempt is only looked at every second",
                 {{"attempt", attempt.name.text()}, {"why", added.error().message}});
  }
}

const Attempt* AttemptTable::find(const Key& key) const {
  const auto at = attempts_.find(key);
  return at == attempts_.end() ? nullptr : &at->second;
}

std::vector<agent_core::ObservedAttempt> AttemptTable::observed() const {
  std::vector<agent_core::ObservedAttempt> observed;
  for (const auto& [key, attempt] : attempts_) {
    // One whose files are being fetched has the agent itself as its supervisor.
    observed.push_back({key, phase_of(*attempt.status), attempt.shim_alive || !attempt.on_disk,
                        attempt.log_complete, attempt.want_lease_end, attempt.want_stop,
                        attempt.gpu_uuids});
  }
  return observed;
}

void AttemptTable::expect(const Key& key, const v1::AttemptSpec& spec) {
  Attempt attempt{name_of(spec),
                  AttemptDir(state_dir_, name_of(spec)),
                  {},
                  std::make_unique<v1::AttemptStatus>(),
                  Instant(spec.lease_end_unix_ms()),
                  false,
                  false,
                  false,
                  false,
                  {},
                  0};
  attempt.gpu_uuids.assign(spec.gpu_uuids().begin(), spec.gpu_uuids().end());
  name_status(spec, *attempt.status);
  attempt.status->set_phase(v1::ATTEMPT_PHASE_PREPARING);
  attempts_.insert_or_assign(key, std::move(attempt));
}

void AttemptTable::set_progress(const Key& key, const std::string& progress) {
  const auto at = attempts_.find(key);
  if (at != attempts_.end() && !at->second.on_disk && at->second.status->progress() != progress) {
    at->second.status->set_progress(progress);
    callbacks_.on_status(key);
  }
}

Result<void> AttemptTable::start(const Key& key, const v1::ShimOrder& order) {
  if (find(key) == nullptr) {
    expect(key, order.spec());
  }
  Attempt& attempt = attempts_.at(key);
  v1::ShimWant want;
  want.set_lease_end_unix_ms(attempt.want_lease_end.unix_ms());
  want.set_stop(attempt.want_stop);
  Result<void> done = attempt.dir.create();
  if (done) {
    done = attempt.dir.write_want(want);
  }
  if (done) {
    done = attempt.dir.write_order(order);
  }
  if (!done) {
    return done;
  }
  attempt.on_disk = true;
  watch(key, attempt);
  spawn(attempt);
  return {};
}

void AttemptTable::fail(const Key& key, const v1::AttemptSpec& spec, int end_reason,
                        const std::string& detail) {
  expect(key, spec);
  Attempt& attempt = attempts_.at(key);
  attempt.status->set_phase(v1::ATTEMPT_PHASE_ENDED);
  attempt.status->set_end_reason(static_cast<v1::EndReason>(end_reason));
  attempt.status->set_detail(detail);
  attempt.status->set_ended_unix_ms(unix_ms());
  v1::ShimOrder order;
  *order.mutable_spec() = spec;
  Result<void> kept = attempt.dir.create();
  if (kept) {
    kept = attempt.dir.write_status(*attempt.status);
  }
  if (kept) {
    kept = attempt.dir.write_order(order);
  }
  attempt.on_disk = true;
  log_.warning("an attempt cannot start", {{"attempt", attempt.name.text()}, {"why", detail}});
  if (!kept) {
    // It is reported all the same; only a restart of the agent would try it again.
    log_.error("its end cannot be kept", {{"why", kept.error().message}});
  }
  callbacks_.on_status(key);
}

void AttemptTable::update_want(const Key& key, Instant lease_end, bool stop) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end()) {
    return;
  }
  Attempt& attempt = at->second;
  if (!attempt.on_disk) {
    attempt.want_lease_end = lease_end;
    if (stop) {
      attempts_.erase(at);  // nothing of it exists, and bmd no longer wants it
    }
    return;
  }
  v1::ShimWant want;
  if (Result<v1::ShimWant> before = attempt.dir.read_want(); before) {
    want = std::move(*before);
  }
  want.set_lease_end_unix_ms(lease_end.unix_ms());
  want.set_stop(stop);
  if (const Result<void> written = attempt.dir.write_want(want); !written) {
    log_.error("orders for a shim cannot be written",
               {{"attempt", attempt.name.text()}, {"why", written.error().message}});
    return;
  }
  attempt.want_lease_end = lease_end;
  attempt.want_stop = stop;
}

void AttemptTable::start_shim(const Key& key) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end()) {
    return;
  }
  Attempt& attempt = at->second;
  const milliseconds rest =
      std::min(kShimRestMin * (1 << std::min(attempt.shim_starts, 6)), kShimRestMax);
  const bool rests = attempt.shim_starts > 0 && Attempt::Clock::now() < attempt.shim_started + rest;
  if (attempt.on_disk && !rests) {
    log_.warning("an attempt without a shim gets a new one", {{"attempt", attempt.name.text()}});
    spawn(attempt);
  }
}

void AttemptTable::spawn(Attempt& attempt) {
  attempt.shim_started = Attempt::Clock::now();
  ++attempt.shim_starts;
  const Result<void> spawned = spawn_shim(attempt.dir, shim_program_);
  attempt.shim_alive = spawned.ok();
  if (!spawned) {
    log_.error("a shim cannot be started",
               {{"attempt", attempt.name.text()}, {"why", spawned.error().message}});
  }
}

void AttemptTable::forget(const Key& key) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end()) {
    return;
  }
  watch_->remove(key);
  if (const Result<void> removed = at->second.dir.remove(); !removed) {
    log_.error("an ended attempt cannot be removed",
               {{"attempt", at->second.name.text()}, {"why", removed.error().message}});
    watch(key, at->second);
    return;  // the next round tries again
  }
  log_.debug("attempt forgotten", {{"attempt", at->second.name.text()}});
  attempts_.erase(at);
}

void AttemptTable::set_log_complete(const Key& key) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || at->second.log_complete) {
    return;
  }
  at->second.log_complete = true;
  at->second.status->set_log_complete(true);
  // Lost in a crash, it costs one more question to bmd.
  if (const Result<void> kept = write_file(log_complete_path(at->second.dir), ""); !kept) {
    log_.warning("a mark cannot be written", {{"why", kept.error().message}});
  }
  callbacks_.on_status(key);
}

void AttemptTable::read_status(const Key& key, Attempt& attempt) {
  Result<v1::AttemptStatus> status = attempt.dir.read_status();
  if (!status) {
    return;  // none yet
  }
  status->set_log_complete(attempt.log_complete);
  if (status->SerializeAsString() == attempt.status->SerializeAsString()) {
    return;
  }
  *attempt.status = std::move(*status);
  attempt.shim_starts = 0;
  callbacks_.on_status(key);
}

bool AttemptTable::shim_lives(const Attempt& attempt) const {
  return attempt.dir.shim_alive() ||
         (attempt.shim_starts > 0 && !attempt.ended() &&
          Attempt::Clock::now() < attempt.shim_started + kShimStartLimit);
}

bool AttemptTable::look_for_shim(const Key& key) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end() || !at->second.on_disk) {
    return false;
  }
  at->second.shim_alive = shim_lives(at->second);
  return at->second.shim_alive;
}

void AttemptTable::look() {
  std::vector<Key> keys;
  for (const auto& [key, attempt] : attempts_) {
    if (attempt.on_disk) {
      keys.push_back(key);
    }
  }
  for (const Key& key : keys) {
    const auto at = attempts_.find(key);
    if (at == attempts_.end()) {
      continue;  // a callback has dropped it
    }
    look_for_shim(key);
    read_status(key, at->second);
    callbacks_.on_log(key);
  }
}

}  // namespace bmgpu::agent
