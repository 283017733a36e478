// The market's rules written down as plainly as possible: no index, every answer by looking at
// everything. Only the formula of one slot's price is shared with core (it has test vectors).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/core.h"

namespace bmgpu::core {

struct NaiveGpu {
  std::string uuid;
  GpuState state = GpuState::Free;
  OrderId held_by{};
};
struct NaiveNode {
  NodeId id;
  AccountId owner;
  SiteId site;
  std::string model;
  Price floor;
  NodeCapacity capacity;
  std::vector<NaiveGpu> gpus{};
  bool ready = false;
  bool lost = false;
  bool draining = false;
  Instant drained{};
  bool left_supply = false;
};
struct NaiveLease {
  OrderId id;
  AccountId tenant;
  NodeId node;
  std::vector<std::string> uuids;
  NodeCapacity takes;
  Instant start;
  Instant end;
  std::vector<Price> prices;
  Money quoted;
  Price limit;
  std::optional<Instant> running{};
  std::optional<EndReason> ending{};
  Instant ending_since{};
  bool booked = false;  // it has not started
  bool delayed = false;
  bool cancelled = false;
  bool was_booked = false;
  bool fee_waived = false;  // the node where it was booked has left
  Instant started{};
  Price floor{};  // of the owner where it was granted
};
using PoolName = std::pair<std::string, SiteId>;
struct NaiveOrder {
  OrderId id;
  AccountId tenant;
  Resources resources;
  Duration duration;
  Price limit;
  Instant placed;
  PoolName home;
};

// What the market must answer.
struct Leased {
  NodeId node;
  std::vector<std::string> uuids;
  std::vector<Price> prices;
  Money quoted;
  bool operator==(const Leased&) const = default;
};
struct Waits {
  ReasonCode code;
  bool operator==(const Waits&) const = default;
};
struct Says {  // refused, or done if absent
  std::optional<ReasonCode> refused;
  bool operator==(const Says&) const = default;
};
struct Billed {
  EndReason reason;
  Duration billed;
  Money charged;
  bool operator==(const Billed&) const = default;
};
using Outcome = std::variant<Says, Leased, Waits, Billed>;

class NaiveMarket {
 public:
  NaiveMarket();

  void add_node(NaiveNode node);  // not ready
  Outcome set_ready(NodeId node, bool ready);
  Outcome set_draining(Instant now, NodeId node, bool draining);
  // It leaves and comes back as a new node: removed, registered again, not ready.
  Outcome replace(NodeId node);
  std::vector<Billed> lose(Instant now, NodeId node, Instant last_acknowledged);
  void report_gpu(Instant now, const std::string& uuid, bool ok, bool clean);

  // `id` is the one that the market gave out.
  Outcome place(Instant now, const PlaceOrder& command, OrderId id);
  Outcome quote(Instant now, const RequestQuote& command) const;  // Leased, without node and uuids
  Outcome stop(Instant now, AccountId tenant, OrderId id);
  Outcome extend(Instant now, const ExtendLease& command);  // Leased: prices and quoted
  Outcome report_running(Instant now, OrderId id);
  Outcome report_ended(Instant now, OrderId id, EndReason reason);
  // Everything that is due. Returns the leases granted, in order.
  std::vector<std::pair<OrderId, Leased>> settle(Instant now);
  // What happened to bookings in the last settle(), in order.
  const std::vector<std::string>& booked_events() const { return booked_events_; }

  const std::map<OrderId, NaiveLease>& leases() const { return leases_; }
  const std::map<OrderId, NaiveOrder>& waiting() const { return waiting_; }
  std::vector<NaiveNode> nodes() const;

 private:
  struct Place {
    PoolName pool;
    NodeId node;
    Leased terms;
    Instant start{};
  };
  // What moves the prices of a pool, counted anew each time.
  struct Pool {
    PoolName name;
    std::int64_t demand = 0;  // leased now
    std::int64_t waiting = 0;
    std::int64_t supply = 0;
    std::int64_t leased = 0;
    std::int64_t healthy = 0;
    bool owners_use_some = false;
    Price last;
  };

  bool placeable(const NaiveNode& node) const;
  std::int64_t free_gpus(const NaiveNode& node) const;
  NodeCapacity used(NodeId node) const;
  bool fits(const NaiveNode& node, const Resources& resources, bool when_empty) const;
  NodeCapacity wants(const NaiveNode& node, const Resources& resources) const;
  Pool look_at(const PoolName& name) const;
  // Of one slot, with `more` GPUs taken.
  std::int64_t demand(const Pool& pool, SlotNumber slot, Instant now, std::int64_t more) const;
  void close_slot();
  std::vector<Price> prices(const Pool& pool, std::int64_t gpus, Instant now, Instant from,
                            Instant until, std::int64_t first_index, Price floor) const;
  std::variant<Place, ReasonCode> cheapest(Instant now, const Resources& resources,
                                           Duration duration, const NaiveOrder* waiting) const;
  std::variant<PoolName, ReasonCode> home(const Resources& resources) const;
  std::vector<std::string> models(const Resources& resources) const;
  std::optional<std::pair<OrderId, Place>> next(Instant now) const;
  Leased grant(Instant now, const NaiveOrder& order, const Place& place);
  Outcome book(Instant now, const PlaceOrder& command, NaiveOrder order);

  // Bookings. "Free" GPUs: of a healthy node's, those that no other lease has in any part of it.
  std::vector<std::string> bookable(const NaiveNode& node, Instant from, Instant until,
                                    OrderId except) const;
  std::vector<std::string> free_now(const NaiveNode& node, Instant now, Instant until,
                                    OrderId except) const;
  bool has_bookings(NodeId node) const;
  bool room_beside(const NaiveNode& node, NodeCapacity want, Instant from, Instant until,
                   OrderId except) const;
  std::variant<Place, ReasonCode> cheapest_window(Instant now, const Resources& resources,
                                                  const TimeWish& wish, Duration duration) const;
  static bool can_be(const TimeWish& wish, Duration duration, Instant now, Instant book_end);
  Instant book_end(Instant now) const;
  bool displaced(const NaiveLease& lease) const;
  bool ready_to_start(const NaiveLease& lease) const;
  bool start(Instant now, NaiveLease& lease);
  bool move_ahead(NaiveLease& lease);
  void start_or_delay(Instant now, OrderId id);
  Billed give_back(OrderId id, Money fee);
  Money fee_of(const NaiveLease& lease) const;
  bool one_due(Instant now);
  bool help_one(Instant now);
  void move_prices(Instant now);
  Billed finish(OrderId id, EndReason reason, Instant stopped);
  void changed() { review_ = something_waits(); }
  bool something_waits() const;
  bool counts_as_demand(const NaiveOrder& order) const;

  MarketPolicy policy_;
  std::vector<Fixed> weights_;
  std::vector<std::string> known_models_;  // in the order of their class ids
  std::map<NodeId, NaiveNode> nodes_;
  std::map<OrderId, NaiveLease> leases_;
  std::map<OrderId, NaiveOrder> waiting_;
  std::map<PoolName, Price> last_prices_;
  Instant last_price_tick_;
  SlotNumber open_slot_;                                            // 0: no time has passed
  std::map<PoolName, std::map<std::int64_t, std::int64_t>> noted_;  // by slot of the week
  bool review_ = false;
  std::vector<std::string> booked_events_;
};

inline constexpr std::int64_t kNaiveBase = 1'000'000;
inline constexpr Duration kNaiveBilledMin = minutes(15);
inline constexpr Duration kNaiveTurnaround = seconds(120);

Money cost(const std::vector<Price>& prices, Instant start, Instant from, Instant until);
// Price × time without rounding, against a limit.
bool within(const std::vector<Price>& prices, Instant start, Instant from, Instant until,
            std::int64_t gpus, Price limit);
Instant priced_end(Instant start, Instant end);

}  // namespace bmgpu::core
