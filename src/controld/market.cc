#include "controld/market.h"

#include "controld/views.h"
#include "core/views.h"

namespace bmgpu::controld {
namespace {

constexpr std::chrono::seconds kSweepEvery{60};
constexpr std::chrono::seconds kMeasureEvery{5};
constexpr std::chrono::milliseconds kRelayEvery{200};

}  // namespace

void put_all(Turn& turn, Directory::Documents documents) {
  for (store::Document& document : documents) {
    turn.put(std::move(document));
  }
}

Market::Market(const MarketParts& given)
    : parts(given),
      orders(given.directory, given.journal, given.history, given.logs,
             static_cast<std::uint64_t>(given.config.limits.job_bytes_per_account_max)),
      sessions({given.directory, given.liveness, given.inbox, given.logs, orders, given.relay,
                given.log, given.dir.market()}) {}

Result<void> Market::load(const core::State& state) {
  const Result<void> loaded = parts.directory.load(parts.journal);
  return loaded ? orders.load(state) : loaded;
}

Result<void> Market::open(Turn& turn) {
  Directory::Documents documents;
  if (!parts.directory.has_tokens()) {
    const Result<TokenView> token = parts.directory.create_token(
        {api::Role::Operator, "operator", AccountId(), "", "", Duration()}, AccountId(), turn.now(),
        documents);
    check(token.ok(), "market: the first token was refused");
    // Before the commit: after a crash in between, the next first start writes another one.
    const Result<void> written =
        parts.dir.write("operator.token", parts.directory.secret_text(token->id) + "\n", 0600);
    if (!written) {
      return written;
    }
  }
  const Directory::Start start = parts.directory.count_start(turn.state().last_stamp, turn.now(),
                                                             parts.liveness.times(), documents);
  sessions.start(start, turn.state(), turn.boot());
  put_all(turn, std::move(documents));
  core::MarketPolicy wanted = market_policy(parts.config);
  wanted.version = core::policy(turn.state()).version;
  if (wanted.version.is_none() || wanted != core::policy(turn.state())) {
    const core::Answer answer = turn.execute(core::SetPolicy{wanted});
    if (const auto* refused = std::get_if<core::Refused>(&answer)) {
      return Error{ErrorCode::InvalidArgument,
                   "the configured prices are refused: " + refused->reason.detail};
    }
  }
  return {};
}

void Market::begin(Turn& turn) {
  sessions.begin(turn);
  if (turn.boot() - last_relay_ >= kRelayEvery) {
    last_relay_ = turn.boot();
    parts.relay.tick();
    parts.projection.refill(parts.journal);
    orders.projected(parts.projection.applied());
  }
  if (turn.writable() && turn.boot() - last_sweep_ >= kSweepEvery) {
    last_sweep_ = turn.boot();
    put_all(turn, parts.directory.sweep(turn.now()));
  }
  if (turn.boot() - last_measure_ >= kMeasureEvery) {
    last_measure_ = turn.boot();
    measure(turn);
  }
}

void Market::observe(Turn& turn, const core::Event& event) { orders.observe(turn, event); }

void Market::committed(const Turn& turn, Sequence last) {
  parts.projection.feed(turn, last);
  sessions.committed(turn);
  orders.committed(turn, last);
}

void Market::reloaded(const core::State& state) {
  const Result<void> loaded = load(state);
  check(loaded.ok(), "market: the journal cannot be read");
  sessions.drop_all();
}

void Market::gap(BootTime now) {
  parts.log.warning("bmd did not run for over a second; all nodes count as renewed");
  parts.liveness.renew_all(now);
}

Sequence Market::projected() const { return parts.projection.durable(); }

void Market::measure(const Turn& turn) {
  const core::State& state = turn.state();
  MarketGauges gauges;
  gauges.leases = static_cast<std::int64_t>(state.leases.size());
  gauges.waiting_orders = static_cast<std::int64_t>(state.waiting.size());
  gauges.sessions = sessions.live();
  gauges.writable = turn.writable();
  gauges.slowest_sync_seconds =
      static_cast<double>(parts.journal.sync_latency().max_us) / 1'000'000;
  gauges.history_lag = static_cast<std::int64_t>(parts.projection.lag());
  for (const auto& [id, node] : state.nodes) {
    const bool offered = node.ready && !node.lost && node.listing == core::NodeListing::Offered;
    gauges.nodes_offered += offered ? 1 : 0;
    for (const core::GpuRecord& gpu : node.gpus) {
      const std::string& model = core::class_spec(state, gpu.gpu_class).model;
      ++gauges.gpus[{model, gpu_state_text(gpu.state)}];
    }
    const std::optional<BootTime> silence = parts.liveness.silence(id, turn.boot());
    const std::optional<NodeEntry> entry = parts.directory.node(id);
    if (silence && entry) {
      gauges.heartbeat_age_seconds[entry->name] = std::chrono::duration<double>(*silence).count();
    }
  }
  parts.metrics.market(gauges);
  parts.measure_edges();
}

}  // namespace bmgpu::controld
