// The nouns of the market: plain, comparable values. Nothing here reads a clock or does I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/money.h"
#include "base/time.h"

namespace bmgpu::core {

// Every limit of the core in one place; beyond one, a command is refused with LimitReached or
// OutOfRange. docs/reference/limits.md lists them for people.
struct Limits {
  static constexpr std::int64_t kGpusPerNodeMax = 64;
  static constexpr std::int64_t kGpusPerOrderMax = 64;
  static constexpr std::int64_t kNodesMax = 10'000;
  static constexpr std::int64_t kWaitingOrdersMax = 1'000'000;
  static constexpr std::int64_t kLiveLeasesMax = 1'000'000;
  static constexpr std::int64_t kLiveQuotesMax = 100'000;
  static constexpr Duration kLeaseMin = minutes(1);
  static constexpr Duration kLeaseMax = hours(24 * 30);     // extensions included
  static constexpr Price kPriceMax{250'000'000'000};        // a million units per GPU-hour
  static constexpr std::int64_t kBookSlots = 14 * 24 * 4;   // how far ahead can be booked
  static constexpr std::int64_t kClosedSlots = 7 * 24 * 4;  // closed slots that are remembered
  static constexpr std::int64_t kAllowedIntervalsMax = 64;  // of one wish for time
  static constexpr std::int64_t kCurveGpusMax = 1'000'000;  // expected demand of one slot
};

// [from, until)
struct Interval {
  Instant from;
  Instant until;
  friend auto operator<=>(const Interval&, const Interval&) = default;
};

enum class Form { Unknown, Pcie, Sxm };

// What a price and a demand belong to, together with the site.
struct GpuClassSpec {
  std::string model;  // as NVML names it: "NVIDIA A100 80GB PCIe"
  std::int64_t memory_mib = 0;
  Form form = Form::Unknown;
  friend auto operator<=>(const GpuClassSpec&, const GpuClassSpec&) = default;
};

struct NodeCapacity {
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int64_t scratch_mib = 0;
  bool operator==(const NodeCapacity&) const = default;
};

struct GpuDescription {
  std::string uuid;  // identity across restarts and index changes
  GpuClassSpec spec;
  bool operator==(const GpuDescription&) const = default;
};

enum class Driver { Real, Simulated };

// What is allocated: thousandths of one GPU and memory on it. A whole GPU is 1000.
struct Item {
  GpuId gpu;
  std::int32_t thousandths = 1000;
  std::int64_t memory_mib = 0;
  bool operator==(const Item&) const = default;
};

// One rank's part of a node. This issue has one rank per lease; gangs have several.
struct RankPlacement {
  NodeId node;
  std::vector<Item> items;
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int64_t scratch_mib = 0;
  bool operator==(const RankPlacement&) const = default;
};

// Items held during [from, until). Failover and migration append one; the last is the present one.
struct Allocation {
  Instant from;
  Instant until;
  std::vector<RankPlacement> ranks;  // by rank number
  bool operator==(const Allocation&) const = default;
};

enum class AttemptState {
  Assigned,  // the node has been told, or will be
  Running,   // the device check passed: metering runs
  Ended,     // the node confirmed that no process of it is left
};

// What can end a lease or a waiting order. A closed list; "unknown" is not in it.
enum class EndReason {
  JobExited,
  Stopped,
  TimeUp,
  NodeLost,
  StartFailed,
  DeviceCheckFailed,
  PreparationTimeout,
  Cancelled,
  Expired,
  GpuLost,
  OutOfMemory,
  HostUnavailable,  // what was booked could not start in time, and nothing equal was free
};

// One start of one rank.
struct Attempt {
  AttemptNumber number{1};
  Incarnation incarnation;
  AttemptState state = AttemptState::Assigned;
  bool operator==(const Attempt&) const = default;
};

// Ended leases are history, not state.
enum class LeaseState {
  Booked,     // starts later; its items are chosen and may be swapped for equal ones
  Cancelled,  // while it was booked: holds nothing; its fee is settled when it would have started
  Held,       // started without a job: metered, nothing runs
  Preparing,
  Running,
  Ending,
};
enum class RestartPolicy { HostFailure, Never };

struct Resources {
  std::int64_t gpus = 0;
  std::string gpu_words;  // "a100 80gb", normalised; empty = any class
  std::int64_t gpu_memory_mib_min = 0;
  std::int64_t cpu_millis = 0;   // 0 = the GPUs' share of the node
  std::int64_t memory_mib = 0;   // 0 = the GPUs' share of the node
  std::int64_t scratch_mib = 0;  // 0 = the GPUs' share of the node
  bool operator==(const Resources&) const = default;
};

enum class StartKind { Now, At, Cheapest };

// When a lease shall run. Now: as soon as it can, waiting if it must. The other two are booked
// firmly at once, or refused.
struct TimeWish {
  StartKind start = StartKind::Now;
  Instant earliest;               // At: the start itself. Cheapest: no start before it
  Instant deadline;               // Cheapest: finished by then
  std::vector<Interval> allowed;  // Cheapest: the lease lies in one of them; empty: anywhere.
                                  // In order, disjoint, each of some length
  bool operator==(const TimeWish&) const = default;
};

struct Lease {
  LeaseId id;
  OrderId order;
  AccountId tenant;
  ClassId gpu_class;
  SiteId site;
  std::int64_t gpus = 0;
  Instant start;
  Instant end;                     // planned; an extension moves it
  std::vector<Price> slot_prices;  // all GPUs together, per UTC slot touched, locked
  std::vector<Allocation> allocations;
  std::vector<Attempt> attempts;  // by rank: the newest attempt of each
  PolicyVersion policy;
  RestartPolicy restart = RestartPolicy::HostFailure;
  LeaseState state = LeaseState::Preparing;
  std::optional<Instant> running_since;  // metering starts here
  std::optional<EndReason> ending;       // set with state Ending
  std::optional<Instant> ending_since;   // metering stops here
  std::string ending_detail;
  std::optional<std::int32_t> exit_code;
  Price price_limit;        // average per GPU-slot, 0 = none
  Money quoted;             // the most that it can cost; nothing above is ever charged
  Duration billed_min;      // the policy's when it was granted
  Instant placed;           // when it was granted or booked; up to its start for a booking
  Instant started;          // when its items were given to it: the start, or up to turnaround later
  Instant preparing_since;  // when its job was: as it started, or later by JobGiven
  Price owner_floor;        // a swap moves it only to nodes whose owner asks no more than this
  std::int64_t cancel_fee_permille = 0;  // of the quote; 0 unless it was booked ahead
  bool without_job = false;              // reserved; JobGiven changes that
  bool delayed = false;                  // booked, its start has passed, its items are not ready
  bool operator==(const Lease&) const = default;
};

struct Order {
  OrderId id;
  AccountId tenant;
  Resources resources;
  Duration duration;
  Price price_limit;  // average per GPU-slot, 0 = none
  RestartPolicy restart = RestartPolicy::HostFailure;
  Instant placed;
  ClassId gpu_class;  // while it waits, its GPUs count as demand of this class and site
  SiteId site;
  bool without_job = false;  // a reservation
  bool operator==(const Order&) const = default;
};

struct PriceFactor {
  std::string name;   // base, demand, load, prefix, floor, cap, owner-floor, in this order
  std::string value;  // for people
  Price after;        // of one GPU-slot, after this factor
  bool operator==(const PriceFactor&) const = default;
};

// A priced, short-lived promise. Availability is checked again when it is taken; its prices hold
// until it expires.
struct Quote {
  QuoteId id;
  AccountId tenant;
  Resources resources;
  ClassId gpu_class;
  SiteId site;
  Price owner_floor;  // taken only on nodes whose owner asks no more than this
  Duration duration;
  Instant start;
  Instant expires;
  std::vector<Price> slot_prices;
  Money total;
  std::vector<PriceFactor> factors;  // of the first GPU's first slot
  PolicyVersion policy;
  TimeWish wish;
  Instant issued;
  bool operator==(const Quote&) const = default;
};

// Base price of classes whose model holds all the words.
struct BasePrice {
  std::string words;  // normalised, e.g. "a100"
  std::int64_t micros_per_gpu_hour = 0;
  bool operator==(const BasePrice&) const = default;
};

// Policy is data: two policies that differ by a number differ in a field. Ratios are per mille.
struct MarketPolicy {
  PolicyVersion version;
  std::string currency = "USD";
  std::vector<BasePrice> base_prices;  // first match wins
  std::int64_t base_default_micros_per_gpu_hour = 1'000'000;
  std::int64_t demand_k_permille = 500;
  std::int64_t duration_decay_permille = 900;  // d of d^T
  std::int64_t floor_permille = 300;           // of base
  std::int64_t load_threshold_permille = 700;
  std::int64_t load_slope_permille = 300;
  std::int64_t surge_cap_permille = 3000;  // of base
  Duration quote_lifetime = seconds(60);
  Duration billed_min = minutes(15);
  Duration preparation_max = minutes(5);
  Duration waiting_max = hours(24);
  Duration load_horizon = hours(1);             // load moves the price of slots that start sooner
  Duration price_tick = minutes(1);             // how often the last price is noted
  Duration delisted_supply = hours(24);         // a drained node's GPUs stay in supply this long
  Duration turnaround = seconds(120);           // a booked lease starts at most this late
  std::int64_t cancel_fee_permille = 100;       // of what was booked ahead and is given back
  Driver drivers_accepted = Driver::Simulated;  // Simulated: real ones too
  bool operator==(const MarketPolicy&) const = default;
};

enum class GpuState { Free, Leased, Sanitizing, Failed };
enum class NodeListing { Offered, Draining };

}  // namespace bmgpu::core
