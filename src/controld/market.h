// Everything that the market loop owns beside the core's state, put together: what a handler needs.
//
// Loop thread, except where a part says otherwise.
#pragma once

#include <functional>
#include <string>

#include "api/server.h"
#include "controld/blob_ledger.h"
#include "controld/config.h"
#include "controld/directory.h"
#include "controld/exec_relay.h"
#include "controld/liveness.h"
#include "controld/log_service.h"
#include "controld/loop.h"
#include "controld/metrics.h"
#include "controld/orders.h"
#include "controld/projection.h"
#include "controld/sessions.h"
#include "controld/state_dir.h"
#include "store/history.h"
#include "store/journal.h"
#include "wire/log.h"

namespace bmgpu::controld {

// Where bmd listens, as others reach it.
struct Endpoints {
  std::string url;
  std::string heartbeat;  // host:port
  std::string ca_sha256;
};

// What main() made; outlives the market.
struct MarketParts {
  const Config& config;
  const StateDir& dir;
  store::Journal& journal;
  store::HistoryReader& history;
  Projection& projection;
  Directory& directory;
  Liveness& liveness;
  Inbox& inbox;
  LogService& logs;
  BlobLedger& blobs;
  ExecRelay& relay;
  Metrics& metrics;
  wire::Log& log;
  std::string version;
  std::function<void(std::uint64_t token)> drop_token;  // ends what it has open
  std::function<void()> measure_edges;                  // into `metrics`
};

class Market final : public LoopClient {
 public:
  explicit Market(const MarketParts& parts);

  // Before the loop runs: what the journal holds beside `state`.
  Result<void> load(const core::State& state);
  // The first work of the loop: policy, the operator's token at the first start, this start's
  // number.
  Result<void> open(Turn& turn);

  void begin(Turn& turn) override;
  void observe(Turn& turn, const core::Event& event) override;
  void committed(const Turn& turn, Sequence last) override;
  void reloaded(const core::State& state) override;
  void gap(BootTime now) override;
  Sequence projected() const override;

  const MarketParts parts;
  Orders orders;
  NodeSessions sessions;
  Endpoints endpoints;  // set before the servers start

 private:
  void measure(const Turn& turn);

  BootTime last_sweep_{};
  BootTime last_measure_{};
  BootTime last_relay_{};
};

// Puts documents into the turn.
void put_all(Turn& turn, Directory::Documents documents);

}  // namespace bmgpu::controld
