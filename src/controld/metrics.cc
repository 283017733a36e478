#include "controld/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <unordered_map>

#include "wire/errors.h"

namespace bmgpu::controld {
namespace {

using Seconds = std::chrono::duration<double>;

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
const prometheus::Histogram::BucketBoundaries kSizes = {1,  2,   4,   8,    16,  32,
                                                        64, 128, 256, 1024, 4096};

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("bmgpu_http_requests_total")
          .Help("Requests answered, by method and Connect code")
          .Register(registry);
  prometheus::Histogram& request_seconds = prometheus::BuildHistogram()
                                               .Name("bmgpu_http_request_seconds")
                                               .Help("From a decoded request to its answer")
                                               .Register(registry)
                                               .Add({}, kSeconds);
  prometheus::Histogram& batch_size = prometheus::BuildHistogram()
                                          .Name("bmgpu_loop_batch_size")
                                          .Help("Pieces of work in one turn of the market loop")
                                          .Register(registry)
                                          .Add({}, kSizes);
  prometheus::Gauge& queued = prometheus::BuildGauge()
                                  .Name("bmgpu_loop_queue_depth")
                                  .Help("Pieces of work that wait for the next turn")
                                  .Register(registry)
                                  .Add({});
  prometheus::Histogram& commit_seconds = prometheus::BuildHistogram()
                                              .Name("bmgpu_journal_commit_seconds")
                                              .Help("One durable commit of the journal")
                                              .Register(registry)
                                              .Add({}, kSeconds);
  prometheus::Counter& events = prometheus::BuildCounter()
                                    .Name("bmgpu_journal_events_total")
                                    .Help("Events written to the journal")
                                    .Register(registry)
                                    .Add({});
  prometheus::Family<prometheus::Counter>& heartbeats =
      prometheus::BuildCounter()
          .Name("bmgpu_heartbeats_total")
          .Help("Heartbeats heard, by whether they were answered")
          .Register(registry);
  prometheus::Counter& heartbeats_answered = heartbeats.Add({{"answered", "true"}});
  prometheus::Counter& heartbeats_unanswered = heartbeats.Add({{"answered", "false"}});
  prometheus::Counter& log_bytes = prometheus::BuildCounter()
                                       .Name("bmgpu_log_bytes_total")
                                       .Help("Bytes of job logs written")
                                       .Register(registry)
                                       .Add({});
  prometheus::Gauge& leases = gauge("bmgpu_leases", "Live leases");
  prometheus::Gauge& waiting = gauge("bmgpu_orders_waiting", "Orders that wait for GPUs");
  prometheus::Gauge& offered = gauge("bmgpu_nodes_offered", "Nodes that are offered");
  prometheus::Gauge& sessions = gauge("bmgpu_agent_sessions", "Agents that are connected");
  prometheus::Gauge& writable =
      gauge("bmgpu_journal_writable", "1 while the journal can be written, else 0");
  prometheus::Gauge& slowest_sync = gauge("bmgpu_journal_sync_seconds_max",
                                          "The slowest sync of the journal's disk since the start");
  prometheus::Gauge& history_lag =
      gauge("bmgpu_history_lag_events", "Events that history does not show yet");
  prometheus::Family<prometheus::Gauge>& connections = prometheus::BuildGauge()
                                                           .Name("bmgpu_edge_connections")
                                                           .Help("Open connections")
                                                           .Register(registry);
  prometheus::Family<prometheus::Gauge>& streams = prometheus::BuildGauge()
                                                       .Name("bmgpu_edge_streams")
                                                       .Help("Open streams and WebSockets")
                                                       .Register(registry);
  prometheus::Family<prometheus::Counter>& refused =
      prometheus::BuildCounter()
          .Name("bmgpu_edge_refused_total")
          .Help("Connections refused because there were too many")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& gpus = prometheus::BuildGauge()
                                                    .Name("bmgpu_gpus")
                                                    .Help("GPUs by class and state")
                                                    .Register(registry);
  prometheus::Family<prometheus::Gauge>& ages =
      prometheus::BuildGauge()
          .Name("bmgpu_node_heartbeat_age_seconds")
          .Help("Since the last acknowledged heartbeat of a node")
          .Register(registry);

  // By (method, code), so that the hot path finds its counter without building label maps.
  std::mutex mutex;
  std::unordered_map<std::string, prometheus::Counter*> request_counters;
  std::map<std::pair<std::string, std::string>, prometheus::Gauge*> gpu_gauges;
  std::map<std::string, prometheus::Gauge*> age_gauges;

  prometheus::Gauge& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
};

Metrics::Metrics(std::string_view version) : families_(std::make_unique<Families>()) {
  prometheus::BuildGauge()
      .Name("bmgpu_build_info")
      .Help("Always 1; the labels say what runs")
      .Register(families_->registry)
      .Add({{"version", std::string(version)}})
      .Set(1);
}

Metrics::~Metrics() = default;

void Metrics::request(std::string_view method, const Result<void>& outcome,
                      std::chrono::nanoseconds took) {
  const std::string_view code = outcome ? "ok" : wire::connect_code(outcome.error().code);
  std::string key(method);
  key.append(" ").append(code);
  prometheus::Counter* counter = nullptr;
  {
    const std::lock_guard lock(families_->mutex);
    prometheus::Counter*& known = families_->request_counters[key];
    if (known == nullptr) {
      known =
          &families_->requests.Add({{"method", std::string(method)}, {"code", std::string(code)}});
    }
    counter = known;
  }
  counter->Increment();
  families_->request_seconds.Observe(Seconds(took).count());
}

void Metrics::batch(std::size_t size, std::size_t queued) {
  if (size > 0) {
    families_->batch_size.Observe(static_cast<double>(size));
  }
  families_->queued.Set(static_cast<double>(queued));
}

void Metrics::commit(std::chrono::nanoseconds took, std::size_t events) {
  families_->commit_seconds.Observe(Seconds(took).count());
  families_->events.Increment(static_cast<double>(events));
}

void Metrics::heartbeat(bool answered) {
  (answered ? families_->heartbeats_answered : families_->heartbeats_unanswered).Increment();
}

void Metrics::log_bytes(std::size_t written) {
  families_->log_bytes.Increment(static_cast<double>(written));
}

void Metrics::market(const MarketGauges& gauges) {
  const std::lock_guard lock(families_->mutex);
  families_->leases.Set(static_cast<double>(gauges.leases));
  families_->waiting.Set(static_cast<double>(gauges.waiting_orders));
  families_->offered.Set(static_cast<double>(gauges.nodes_offered));
  families_->sessions.Set(static_cast<double>(gauges.sessions));
  families_->writable.Set(gauges.writable ? 1 : 0);
  families_->slowest_sync.Set(gauges.slowest_sync_seconds);
  families_->history_lag.Set(static_cast<double>(gauges.history_lag));
  for (auto& [key, known] : families_->gpu_gauges) {
    known->Set(0);
  }
  for (const auto& [key, count] : gauges.gpus) {
    prometheus::Gauge*& known = families_->gpu_gauges[key];
    if (known == nullptr) {
      known = &families_->gpus.Add({{"class", key.first}, {"state", key.second}});
    }
    known->Set(static_cast<double>(count));
  }
  for (const auto& [node, age] : gauges.heartbeat_age_seconds) {
    prometheus::Gauge*& known = families_->age_gauges[node];
    if (known == nullptr) {
      known = &families_->ages.Add({{"node", node}});
    }
    known->Set(age);
  }
}

void Metrics::edge(const std::string& listener, const EdgeGauges& gauges) {
  const std::map<std::string, std::string> label = {{"listener", listener}};
  families_->connections.Add(label).Set(static_cast<double>(gauges.connections));
  families_->streams.Add(label).Set(static_cast<double>(gauges.streams));
  prometheus::Counter& refused = families_->refused.Add(label);
  refused.Increment(static_cast<double>(gauges.refused_total) - refused.Value());
}

std::string Metrics::serialise() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace bmgpu::controld
