// A market for tests: runs commands, checks every event, and keeps a second state that only
// replays.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"

namespace bmgpu::core {

// A quarter hour, so that slot-aligned leases are easy to write.
inline constexpr Instant kStart{1'700'000'100'000};

class TestMarket {
 public:
  // Decides and applies. After each event: check_invariants(). After the command: the replayed
  // state and one made from a snapshot have the same digest, and a refusal changed nothing.
  Answer run(const Command& command);

  // Ticks until nothing is due at the present time.
  void settle();

  void at(Duration since_start) { now_ = kStart + since_start; }
  void set_incarnation(Incarnation incarnation) { incarnation_ = incarnation; }
  Instant now() const { return now_; }
  const State& state() const { return state_; }
  const std::vector<Event>& last_events() const { return last_events_; }
  const std::vector<Request>& last_requests() const { return last_requests_; }
  // Every event so far, in order.
  const std::vector<Event>& history() const { return history_; }
  void clear_last() { last_events_.clear(); }

  // Shortcuts.
  void add_node(std::uint64_t node, std::int64_t gpus,
                const std::string& model = "NVIDIA A100 80GB PCIe",
                std::int64_t gpu_memory_mib = 81'920);
  Answer order(std::uint64_t tenant, std::int64_t gpus, Duration duration,
               const std::string& words = "", Price limit = Price());
  Answer report_running(LeaseId lease);
  Answer report_ended(LeaseId lease, EndReason reason = EndReason::JobExited);
  // Reports every GPU that is being sanitised clean.
  void clean_all();

 private:
  State state_;
  std::uint64_t digest_ = digest(State());
  State replayed_;
  Instant now_ = kStart;
  Incarnation incarnation_{1};
  std::vector<Event> last_events_;
  std::vector<Request> last_requests_;
  std::vector<Event> history_;
};

LeaseId lease_in(const Answer& answer);          // REQUIRES: an OrderAnswer with a lease
OrderId order_in(const Answer& answer);          // REQUIRES: an OrderAnswer
const Reason* refusal_in(const Answer& answer);  // null unless refused

// The bill, if the last command ended the lease.
const LeaseEnded* ended_in(const std::vector<Event>& events);

}  // namespace bmgpu::core
