#include "controld/daemon.h"

#include <sys/utsname.h>

#include <cstdio>
#include <future>
#include <thread>

#include "api/tls.h"
#include "controld/blob_sweeper.h"
#include "controld/handlers.h"
#include "controld/heartbeat.h"
#include "controld/rpc.h"
#include "controld/thread_name.h"
#include "store/sqlite/sqlite_history.h"
#include "store/sqlite/sqlite_journal.h"
#include "wire/json.h"

namespace bmgpu::controld {
namespace {

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

bool is_wildcard(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// What others connect to.
std::string advertised(const Config& config, const std::string& listen) {
  if (!config.advertise_host.empty()) {
    return config.advertise_host;
  }
  return is_wildcard(listen) ? host_name() : listen;
}

api::ServerLimits server_limits(const ConfigLimits& limits) {
  api::ServerLimits out;
  out.body_bytes_max = static_cast<std::size_t>(limits.body_bytes_max);
  out.blob_bytes_max = static_cast<std::size_t>(limits.blob_bytes_max);
  out.connections_max = static_cast<std::size_t>(limits.connections_max);
  out.streams_per_token_max = static_cast<std::size_t>(limits.streams_per_token_max);
  return out;
}

BlobLimits blob_limits(const ConfigLimits& limits) {
  BlobLimits out;
  out.files_per_account_max = static_cast<std::uint64_t>(limits.blobs_per_account_max);
  out.bytes_per_account_max = static_cast<std::uint64_t>(limits.blob_bytes_per_account_max);
  out.kept = std::chrono::hours(limits.blob_kept_hours);
  return out;
}

// What the listeners prove themselves with; absent without TLS.
Result<std::optional<api::TlsIdentity>> prepare_tls(const Config& config, const StateDir& dir) {
  if (config.tls_mode == TlsMode::Off) {
    return std::optional<api::TlsIdentity>();
  }
  std::vector<std::string> names = {host_name()};
  for (const HostPort& address : {config.listen, config.heartbeat_listen}) {
    names.push_back(advertised(config, address.host));
  }
  const std::chrono::system_clock::time_point now(std::chrono::milliseconds(wall_now().unix_ms()));
  Result<api::TlsIdentity> identity =
      config.tls_mode == TlsMode::Files
          ? api::use_tls_files({config.tls_certificate, config.tls_key})
          : api::ensure_self_made_tls(dir.file("tls"), names, now);
  return identity ? Result<std::optional<api::TlsIdentity>>(std::move(*identity))
                  : Result<std::optional<api::TlsIdentity>>(identity.error());
}

std::string digest_text(const core::State& state) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(core::digest(state)));
  return digits;
}

Result<void> write_endpoints(const StateDir& dir, const Endpoints& endpoints) {
  const wire::JsonObject object = {{"url", endpoints.url},
                                   {"heartbeat", endpoints.heartbeat},
                                   {"ca_sha256", endpoints.ca_sha256}};
  return dir.write("endpoint.json", wire::print_json_object(object) + "\n", 0644);
}

}  // namespace

// Members end in reverse order: servers first, the journal last.
struct Daemon::Parts {
  Parts(Config given, StateDir state_dir, wire::Log& given_log)
      : config(std::move(given)), dir(std::move(state_dir)), log(given_log) {}

  Config config;
  StateDir dir;
  wire::Log& log;
  std::unique_ptr<store::Journal> journal;
  std::unique_ptr<store::HistoryReader> history;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<Directory> directory;
  std::unique_ptr<Liveness> liveness;
  std::unique_ptr<Inbox> inbox;
  std::unique_ptr<LogService> logs;
  std::unique_ptr<BlobLedger> blobs;
  std::unique_ptr<BlobSweeper> sweeper;
  std::unique_ptr<Projection> projection;
  ExecRelay relay;
  std::unique_ptr<Market> market;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<api::Server> heartbeat_server;
  std::unique_ptr<api::Server> server;
  std::unique_ptr<Rpc> rpc;
  std::thread loop_thread;

  Result<void> open(std::string version);
  Result<void> listen();
  void add_methods();
  void add_pages();
  Result<void> run_loop();
  void start_sweeper();
};

Result<void> Daemon::Parts::open(std::string version) {
  Result<std::unique_ptr<store::Journal>> opened =
      store::open_sqlite_journal(dir.file("journal.db"));
  if (!opened) {
    return opened.error();
  }
  journal = std::move(*opened);
  const Result<store::Loaded> loaded = journal->load();
  if (!loaded) {
    return loaded.error();
  }
  Result<std::unique_ptr<store::HistoryWriter>> writer =
      store::open_history_writer(dir.file("history.db"));
  if (!writer) {
    return writer.error();
  }
  const Result<void> caught_up = store::catch_up(*journal, *loaded, **writer);
  if (!caught_up) {
    return caught_up;
  }
  Result<std::unique_ptr<store::HistoryReader>> reader =
      store::open_history_reader(dir.file("history.db"));
  if (!reader) {
    return reader.error();
  }
  history = std::move(*reader);
  LogLimits log_limits;
  log_limits.attempt_bytes_max =
      static_cast<std::uint64_t>(config.limits.log_bytes_per_attempt_max);
  log_limits.total_bytes_max = static_cast<std::uint64_t>(config.limits.log_bytes_max);
  Result<std::unique_ptr<LogStore>> log_store = LogStore::open(dir.file("logs"), log_limits);
  if (!log_store) {
    return log_store.error();
  }
  metrics = std::make_unique<Metrics>(version);
  directory = std::make_unique<Directory>(dir.secret_key(),
                                          static_cast<std::size_t>(config.limits.tokens_max));
  liveness = std::make_unique<Liveness>(LivenessOptions{config.lost, config.fence});
  inbox = std::make_unique<Inbox>(static_cast<std::size_t>(config.limits.queued_requests_max));
  logs = std::make_unique<LogService>(std::move(*log_store), *metrics, log);
  blobs = std::make_unique<BlobLedger>(dir.file("blobs"), blob_limits(config.limits));
  projection = std::make_unique<Projection>(std::move(*writer), loaded->last, log);
  const auto drop_token = [this](std::uint64_t token) {
    server->drop_token(token);
    heartbeat_server->drop_token(token);
  };
  const auto measure_edges = [this] {
    for (const auto& [name, each] :
         {std::pair("api", server.get()), std::pair("heartbeat", heartbeat_server.get())}) {
      const api::ServerStats stats = each->stats();
      metrics->edge(name, {stats.connections, stats.streams, stats.connections_refused_total});
    }
  };
  market = std::make_unique<Market>(MarketParts{
      config, dir, *journal, *history, *projection, *directory, *liveness, *inbox, *logs, *blobs,
      relay, *metrics, log, std::move(version), drop_token, measure_edges});
  loop = std::make_unique<Loop>(*journal, *loaded, LoopOptions{}, *inbox, *market, *metrics, log);
  core::check_invariants(loop->state());
  return market->load(loop->state());
}

Result<void> Daemon::Parts::listen() {
  const auto authenticate = [this](std::string_view bearer) {
    return directory->authenticate(bearer, wall_now());
  };
  const api::ServerLimits limits = server_limits(config.limits);
  Result<std::unique_ptr<api::Server>> main_server = api::Server::create(limits, authenticate);
  Result<std::unique_ptr<api::Server>> second_server = api::Server::create(limits, authenticate);
  if (!main_server || !second_server) {
    return main_server ? second_server.error() : main_server.error();
  }
  server = std::move(*main_server);
  heartbeat_server = std::move(*second_server);
  const Result<std::optional<api::TlsIdentity>> identity = prepare_tls(config, dir);
  if (!identity) {
    return identity.error();
  }
  const std::optional<api::TlsFiles> tls =
      *identity ? std::optional((*identity)->files) : std::nullopt;
  const Result<std::uint16_t> port = server->listen({config.listen.host, config.listen.port, tls});
  if (!port) {
    return port.error();
  }
  const Result<std::uint16_t> heartbeat_port =
      heartbeat_server->listen({config.heartbeat_listen.host, config.heartbeat_listen.port, tls});
  if (!heartbeat_port) {
    return heartbeat_port.error();
  }
  Endpoints& endpoints = market->endpoints;
  endpoints.url = (tls ? "https://" : "http://") +
                  to_text(HostPort{advertised(config, config.listen.host), *port});
  endpoints.heartbeat =
      to_text(HostPort{advertised(config, config.heartbeat_listen.host), *heartbeat_port});
  endpoints.ca_sha256 = *identity ? (*identity)->ca_sha256 : "";
  return {};
}

void Daemon::Parts::add_methods() {
  rpc = std::make_unique<Rpc>(*server, *inbox, *journal, *metrics);
  add_info_methods(*rpc, *market);
  add_offer_methods(*rpc, *market);
  add_order_methods(*rpc, *server, *market);
  add_node_methods(*rpc, *market);
  add_token_methods(*rpc, *market);
  add_log_methods(*server, *market);
  add_event_methods(*rpc, *market);
  add_explain_methods(*rpc, *market);
  add_blob_methods(*rpc, *server, *market);
  add_exec_methods(*server, *market);
  add_session_methods(*server, *market);
}

void Daemon::Parts::add_pages() {
  for (api::Server* each : {server.get(), heartbeat_server.get()}) {
    each->page("/healthz", [] { return api::Server::Page{.body = "ok\n"}; });
  }
  server->page("/readyz", [this] {
    return loop->writable()
               ? api::Server::Page{.body = "ready\n"}
               : api::Server::Page{.status = 503, .body = "the journal cannot be written\n"};
  });
  server->page("/metrics", [this] {
    return api::Server::Page{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                             .body = metrics->serialise()};
  });
}

// The loop's first work opens the market; nobody is answered before that is durable.
Result<void> Daemon::Parts::run_loop() {
  auto opened = std::make_shared<std::promise<Result<void>>>();
  std::future<Result<void>> outcome = opened->get_future();
  inbox->post_always([this, opened](Turn& turn) {
    const Result<void> done = market->open(turn);
    turn.after_commit(
        [opened, done](const Result<void>& durable) { opened->set_value(done ? durable : done); });
  });
  loop_thread = std::thread([this] {
    name_thread("bmd-loop");
    loop->run();
  });
  return outcome.get();
}

// The loop says what is live; once it has stopped, nobody does, and nothing is swept.
void Daemon::Parts::start_sweeper() {
  const auto live = [this]() -> std::optional<std::vector<LiveBlob>> {
    const auto found = std::make_shared<std::promise<std::vector<LiveBlob>>>();
    std::future<std::vector<LiveBlob>> answer = found->get_future();
    const bool posted = inbox->post(
        [this, found](Turn& turn) { found->set_value(market->orders.live_blobs(turn.state())); });
    while (posted && !inbox->closed()) {
      if (answer.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready) {
        return answer.get();
      }
    }
    return std::nullopt;
  };
  sweeper = std::make_unique<BlobSweeper>(*blobs, live, log);
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() {
  const Result<void> stopped = stop();
  if (!stopped) {
    parts_->log.warning("the last snapshot was not written", {{"reason", stopped.error().message}});
  }
}

Result<std::unique_ptr<Daemon>> Daemon::start(Config config, std::string version, wire::Log& log) {
  Result<StateDir> dir = StateDir::open(config.state_dir);
  if (!dir) {
    return dir.error();
  }
  auto parts = std::make_unique<Parts>(std::move(config), std::move(*dir), log);
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(parts)));
  Parts& p = *daemon->parts_;
  Result<void> done = p.open(std::move(version));
  if (done) {
    done = p.listen();
  }
  if (done) {
    done = p.run_loop();
  }
  if (!done) {
    return done.error();
  }
  p.add_methods();
  p.add_pages();
  serve_heartbeats(*p.heartbeat_server, {*p.liveness, *p.metrics, p.loop->incarnation()});
  p.start_sweeper();
  p.heartbeat_server->start();
  p.server->start();
  done = write_endpoints(p.dir, p.market->endpoints);
  if (!done) {
    return done.error();
  }
  log.info("bmd is ready", {{"url", p.market->endpoints.url},
                            {"heartbeat", p.market->endpoints.heartbeat},
                            {"market", p.dir.market()}});
  return daemon;
}

const Endpoints& Daemon::endpoints() const { return parts_->market->endpoints; }

Result<void> Daemon::stop() {
  Parts& p = *parts_;
  if (p.server) {
    p.server->stop();
  }
  if (!p.loop_thread.joinable()) {
    return {};
  }
  p.inbox->close();
  p.loop_thread.join();
  if (p.heartbeat_server) {
    p.heartbeat_server->stop();
  }
  p.logs.reset();
  p.sweeper.reset();
  p.log.info("bmd stopped",
             {{"sequence", p.loop->last().value()}, {"digest", digest_text(p.loop->state())}});
  return p.loop->writable() ? p.loop->checkpoint() : Result<void>();
}

Result<std::string> verify(const std::string& state_dir) {
  Result<StateDir> dir = StateDir::open(state_dir);
  if (!dir) {
    return dir.error();
  }
  Result<std::unique_ptr<store::Journal>> journal =
      store::open_sqlite_journal(dir->file("journal.db"));
  if (!journal) {
    return journal.error();
  }
  const Result<store::Loaded> loaded = (*journal)->load();
  if (!loaded) {
    return loaded.error();
  }
  const core::State state = replay(*loaded);
  core::check_invariants(state);
  return "{\"sequence\":" + std::to_string(loaded->last.value()) + ",\"digest\":\"" +
         digest_text(state) + "\",\"leases\":" + std::to_string(state.leases.size()) +
         ",\"waiting_orders\":" + std::to_string(state.waiting.size()) + "}\n";
}

}  // namespace bmgpu::controld
