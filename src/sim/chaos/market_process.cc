#include "sim/chaos/market_process.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/chaos/event_words.h"

namespace bmgpu::sim {
namespace {

constexpr Duration kWaitMax = milliseconds(200);
constexpr Duration kTick = seconds(1);
constexpr Duration kGap = seconds(1);
constexpr Duration kProbe = seconds(1);
constexpr std::uint64_t kEventsPerSnapshot = 400;
constexpr std::uint64_t kEventsPerFullCheck = 1000;

// Answers as the journal keeps them: the fields as decimal numbers.
std::string text_of(const Reply& reply) {
  std::string text;
  for (const std::int64_t field :
       {std::int64_t{reply.refused}, static_cast<std::int64_t>(reply.order.value()),
        std::int64_t{reply.has_lease}, reply.lease_end.unix_ms(),
        static_cast<std::int64_t>(reply.quote.value()), reply.total.count()}) {
    text += std::to_string(field) + " ";
  }
  return text;
}

Reply reply_of(const std::string& text) {
  std::array<std::int64_t, 6> fields{};
  const char* at = text.data();
  for (std::int64_t& field : fields) {
    at = std::from_chars(at, text.data() + text.size(), field).ptr + 1;
  }
  return {true,
          fields[0] != 0,
          OrderId(static_cast<std::uint64_t>(fields[1])),
          fields[2] != 0,
          Instant(fields[3]),
          QuoteId(static_cast<std::uint64_t>(fields[4])),
          Money(fields[5])};
}

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

}  // namespace

MarketProcess::MarketProcess(World& world, std::uint64_t life)
    : world_(world), life_(life), journal_(world.disk.open()), desk_(world, *this) {}

MarketProcess::~MarketProcess() = default;

void MarketProcess::start() {
  const Result<store::Loaded> loaded = journal_->load();
  check(loaded.ok(), "sim: the journal cannot be read");
  state_ = replay(*loaded);
  incarnation_ = loaded->incarnation;
  last_ = loaded->last;
  snapshot_ = loaded->snapshot_sequence;
  core::check_invariants(state_);
  world_.promises.restarted(state_, world_.now());
  if (world_.durable_digest && *world_.durable_digest != core::digest(state_)) {
    world_.fail("digest", "the state after a restart is not the one that was durable");
  }
  last_turn_ = world_.now();
  last_tick_ = world_.now();
  last_probe_ = world_.now();
  desk_.start(++world_.starts, state_);
  schedule_turn();
}

void MarketProcess::post(Work work) {
  inbox_.push_back(std::move(work));
  if (!turning_ && turn_at_ > world_.now() + milliseconds(1)) {
    schedule_turn();
  }
}

void MarketProcess::schedule_turn() {
  const Instant now = world_.now();
  Instant at = now + kWaitMax;
  if (const auto due = core::next_deadline(state_); due && writable_) {
    at = std::clamp(*due, now + milliseconds(1), at);
  }
  if (!inbox_.empty()) {
    at = now + milliseconds(1);
  }
  turn_at_ = std::max(at, paused_until_);
  world_.timeline.at(turn_at_, [&world = world_, life = life_, number = ++turn_number_] {
    if (world.market_life == life && world.market && world.market->turn_number_ == number) {
      world.market->turn();
    }
  });
}

bool MarketProcess::look_for_gap() {
  const Instant now = world_.now();
  const bool gap = now - last_turn_ > kGap;
  last_turn_ = now;
  return gap;
}

void MarketProcess::turn() {
  turning_ = true;
  if (look_for_gap()) {
    desk_.renew_all();
  }
  const Instant now = world_.now();
  if (!writable_ && now - last_probe_ >= kProbe) {
    probe();
  }
  batch_ = store::Batch();
  batch_.at = now;
  digest_before_ = world_.next_death ? core::digest(state_) : 0;
  desk_.begin_turn();
  const auto due = core::next_deadline(state_);
  if (writable_ && (now - last_tick_ >= kTick || (due && *due <= now))) {
    last_tick_ = now;
    execute(core::Tick{});
  }
  const std::vector<Work> work = std::exchange(inbox_, {});
  for (const Work& piece : work) {
    piece();
  }
  commit();
}

void MarketProcess::commit() {
  std::optional<TurnDeath> death;
  if (!batch_.events.empty() && writable_) {
    death = std::exchange(world_.next_death, std::nullopt);
  }
  if (death == TurnDeath::BeforeStore) {
    world_.note("market dies before store", batch_.events.size());
    world_.crash_market(digest_before_);
    return;
  }
  if (world_.sabotage == Sabotage::BillsAreInflated) {
    for (core::Event& event : batch_.events) {
      if (auto* ended = std::get_if<core::LeaseEnded>(&event)) {
        ended->charged += ended->quoted;
      }
    }
  }
  if (!batch_.empty()) {
    const Result<Sequence> appended = journal_->append(batch_, last_);
    if (appended) {
      last_ = *appended;
      world_.promises.committed(batch_.events, world_.now());
    } else {
      check(appended.error().code != ErrorCode::DataLoss, "sim: a second writer");
      world_.note("market cannot write");
      writable_ = false;
      last_probe_ = world_.now();
      reload();
    }
  }
  send_all(death);
}

void MarketProcess::send_all(std::optional<TurnDeath> death) {
  if (death && writable_) {
    const bool half = *death == TurnDeath::WhileSending;
    world_.note(half ? "market dies while sending" : "market dies before send");
    sends_.resize(half ? sends_.size() / 2 : 0);
    for (const Work& send : sends_) {
      send();
    }
    world_.crash_market(core::digest(state_));
    return;
  }
  for (const NodeId node : std::exchange(to_sync_, {})) {
    desk_.send_desired(node);
  }
  for (const Work& send : std::exchange(sends_, {})) {
    send();
  }
  snapshot_if_due();
  turning_ = false;
  schedule_turn();
}

// Nothing of the turn has happened.
void MarketProcess::reload() {
  const Result<store::Loaded> loaded = journal_->load();
  check(loaded.ok(), "sim: the journal cannot be read");
  check(loaded->last == last_, "sim: a failed write left events behind");
  state_ = replay(*loaded);
  core::check_invariants(state_);
  to_sync_.clear();
  desk_.drop_all();
}

void MarketProcess::probe() {
  last_probe_ = world_.now();
  store::Batch probe;
  probe.at = world_.now();
  probe.documents.push_back({"probe", 1, AccountId(), "?"});
  if (journal_->append(probe, last_)) {
    writable_ = true;
    world_.note("market can write again");
    desk_.drop_all();
  }
}

void MarketProcess::snapshot_if_due() {
  if (!writable_ || last_.value() - snapshot_.value() < kEventsPerSnapshot) {
    return;
  }
  const std::vector<core::Event> events = core::snapshot(state_);
  const Result<void> written = journal_->write_snapshot(last_, events, last_);
  check(written.ok(), "sim: no snapshot");
  snapshot_ = last_;
}

core::Answer MarketProcess::execute(const core::Command& command) {
  check(writable_, "sim: a command while the journal cannot be written");
  ++world_.commands;
  core::Decision decision = core::decide(state_, {world_.now(), incarnation_}, command);
  for (core::Event& event : decision.events) {
    apply(event);
    batch_.events.push_back(std::move(event));
  }
  for (const core::Request& request : decision.requests) {
    sync(std::get<core::SyncNode>(request).node);
  }
  return std::move(decision.answer);
}

void MarketProcess::apply(const core::Event& event) {
  core::apply(state_, event);
  ++world_.core_events;
  world_.note(event_name(event), event_subject(event));
  core::check_invariants_of(state_, event);
  if (world_.core_events % kEventsPerFullCheck == 0) {
    core::check_invariants(state_);
  }
}

// --- people ---

void MarketProcess::take(const Request& request, Answer answer) {
  post([this, request, answer = std::move(answer)] { answer_request(request, answer); });
}

void MarketProcess::answer_request(const Request& request, const Answer& answer) {
  const auto send = [this, answer](const Reply& reply) {
    after_commit([this, answer, reply] { answer(writable_ ? reply : Reply{.available = false}); });
  };
  for (const store::StoredAnswer& stored : batch_.answers) {
    if (stored.account == request.account && stored.key == request.key) {
      return send(reply_of(stored.answer));
    }
  }
  const auto stored = journal_->find_answer(request.account, request.key);
  if (stored && *stored) {
    return send(reply_of((*stored)->answer));
  }
  if (!writable_) {
    return send(Reply{.available = false});
  }
  const Reply reply = decide_request(request);
  batch_.answers.push_back({request.account, request.key, {}, text_of(reply), world_.now()});
  send(reply);
}

Reply MarketProcess::decide_request(const Request& request) {
  if (const auto* confirm = std::get_if<ConfirmNode>(&request.call)) {
    desk_.confirm(confirm->node);
    sync(confirm->node);
    return {};
  }
  return reply_to(execute(std::get<core::Command>(request.call)));
}

Reply MarketProcess::reply_to(const core::Answer& answer) const {
  Reply reply;
  reply.refused = std::holds_alternative<core::Refused>(answer);
  if (const auto* quote = std::get_if<core::QuoteAnswer>(&answer)) {
    reply.quote = quote->quote;
    reply.total = state_.quotes.at(quote->quote).total;
  } else if (const auto* order = std::get_if<core::OrderAnswer>(&answer)) {
    reply.order = order->order;
    const auto lease = order->lease ? state_.leases.find(*order->lease) : state_.leases.end();
    if (lease != state_.leases.end()) {
      reply.has_lease = true;
      reply.lease_end = lease->second.end;
      reply.total = lease->second.quoted;
    }
  }
  return reply;
}

}  // namespace bmgpu::sim
