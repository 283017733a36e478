#include "controld/loop.h"

#include <algorithm>

#include "controld/metrics.h"

namespace bmgpu::controld {
namespace {

using std::chrono::milliseconds;

// How often liveness is looked at, work or not.
constexpr milliseconds kWaitMax{200};
constexpr milliseconds kTick{1000};
// Longer without a turn, bmd itself was away (DESIGN: liveness).
constexpr milliseconds kGap{1000};
constexpr milliseconds kProbe{1000};
// From this size on, the next batch is likely as large: waiting a little for it saves commits.
constexpr std::size_t kLingerFrom = 8;

const Error kNotWritable{ErrorCode::Unavailable,
                         "the market's journal cannot be written now (is its disk full?); nothing "
                         "was changed; try again with the same idempotency key"};

}  // namespace

core::State replay(const store::Loaded& loaded) {
  core::State state;
  for (const core::Event& event : loaded.snapshot) {
    core::apply(state, event);
  }
  for (const store::Recorded& recorded : loaded.tail) {
    core::apply(state, recorded.event);
  }
  return state;
}

Loop::Loop(store::Journal& journal, const store::Loaded& loaded, LoopOptions options, Inbox& inbox,
           LoopClient& client, Metrics& metrics, wire::Log& log)
    : journal_(journal),
      options_(options),
      inbox_(inbox),
      client_(client),
      metrics_(metrics),
      log_(log),
      state_(replay(loaded)),
      incarnation_(loaded.incarnation),
      last_(loaded.last),
      snapshot_(loaded.snapshot_sequence),
      last_turn_(boot_now()) {}

void Loop::run() {
  std::vector<Work> work;
  while (!inbox_.closed() || inbox_.size() > 0) {
    const std::size_t wanted = last_batch_ >= kLingerFrom ? last_batch_ : 0;
    work.clear();
    inbox_.take(work, options_.batch_max, wait_for(), wanted, options_.linger);
    turn(work);
  }
}

std::chrono::nanoseconds Loop::wait_for() const {
  const std::optional<Instant> due = core::next_deadline(state_);
  if (!due || !writable_) {
    return kWaitMax;
  }
  const std::int64_t ms = (*due - wall_now()).count();
  return milliseconds(std::clamp<std::int64_t>(ms, 0, kWaitMax.count()));
}

void Loop::turn(std::vector<Work>& work) {
  const BootTime boot = boot_now();
  if (boot - last_turn_ > kGap) {
    client_.gap(boot);
  }
  last_turn_ = boot;
  const Instant now = wall_now();
  if (!writable_ && boot - last_probe_ >= kProbe) {
    last_probe_ = boot;
    try_to_write(now);
  }
  Turn turn(state_, {now, incarnation_}, boot, writable_,
            [this](Turn& t, const core::Event& event) { client_.observe(t, event); });
  client_.begin(turn);
  const std::optional<Instant> due = core::next_deadline(state_);
  if (writable_ && (boot - last_tick_ >= kTick || (due && *due <= now))) {
    last_tick_ = boot;
    turn.execute(core::Tick{});
  }
  for (Work& piece : work) {
    piece(turn);
  }
  last_batch_ = work.size();
  metrics_.batch(work.size(), inbox_.size());
  commit(turn);
}

void Loop::commit(Turn& turn) {
  Result<void> durable;
  if (!turn.batch().empty()) {
    const BootTime start = boot_now();
    const Result<Sequence> appended = journal_.append(turn.batch(), last_);
    metrics_.commit(boot_now() - start, turn.batch().events.size());
    if (appended) {
      last_ = *appended;
    } else {
      check(appended.error().code != ErrorCode::DataLoss, "journal: a second writer");
      log_.error("the journal cannot be written; the market is read-only",
                 {{"reason", appended.error().message}});
      durable = kNotWritable;
      writable_ = false;
      last_probe_ = boot_now();
      reload();
    }
  }
  if (durable) {
    client_.committed(turn, last_);
  }
  for (const Turn::AfterCommit& action : turn.after()) {
    action(durable);
  }
  snapshot_if_due();
}

void Loop::reload() {
  const Result<store::Loaded> loaded = journal_.load();
  check(loaded.ok(), "journal: cannot be read after a failed write");
  check(loaded->last == last_, "journal: a failed write left events behind");
  state_ = replay(*loaded);
  client_.reloaded(state_);
}

void Loop::try_to_write(Instant now) {
  store::Batch probe;
  probe.at = now;
  probe.documents.push_back({"probe", 1, AccountId(), std::to_string(now.unix_ms())});
  if (journal_.append(probe, last_)) {
    writable_ = true;
    log_.info("the journal can be written again");
    client_.reloaded(state_);
  }
}

void Loop::snapshot_if_due() {
  if (!writable_ || last_.value() - snapshot_.value() < options_.events_per_snapshot) {
    return;
  }
  const Result<void> written = checkpoint();
  if (!written) {
    log_.warning("no snapshot could be written", {{"reason", written.error().message}});
    snapshot_ = last_;  // the next one is tried after as many events
  }
}

Result<void> Loop::checkpoint() {
  if (last_ == snapshot_) {
    return {};
  }
  const Sequence cut = std::min(client_.projected(), last_);
  const Result<void> written = journal_.write_snapshot(last_, core::snapshot(state_), cut);
  if (written) {
    snapshot_ = last_;
  }
  return written;
}

}  // namespace bmgpu::controld
