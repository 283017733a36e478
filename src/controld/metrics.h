// What bmd measures, as Prometheus text. docs/reference/metrics.md lists each name.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::controld {

// How the market is now; set once a second by the loop.
struct MarketGauges {
  std::int64_t leases = 0;
  std::int64_t waiting_orders = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> gpus;  // (class, state) → count
  std::map<std::string, double> heartbeat_age_seconds;               // node name → age
  std::int64_t nodes_offered = 0;
  std::int64_t sessions = 0;
  bool writable = true;
  double slowest_sync_seconds = 0;
  std::int64_t history_lag = 0;
};

// Of one listener.
struct EdgeGauges {
  std::uint64_t connections = 0;
  std::uint64_t streams = 0;
  std::uint64_t refused_total = 0;
};

class Metrics {
 public:
  explicit Metrics(std::string_view version);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void request(std::string_view method, const Result<void>& outcome, std::chrono::nanoseconds took);
  void batch(std::size_t size, std::size_t queued);
  void commit(std::chrono::nanoseconds took, std::size_t events);
  void heartbeat(bool answered);
  void log_bytes(std::size_t written);
  void market(const MarketGauges& gauges);
  void edge(const std::string& listener, const EdgeGauges& gauges);

  std::string serialise() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace bmgpu::controld
