#include "sim/chaos/run.h"

#include <memory>

#include "sim/chaos/market_process.h"
#include "sim/chaos/nemesis.h"
#include "sim/chaos/people.h"
#include "sim/chaos/sim_node.h"
#include "sim/chaos/world.h"
#include "sim/checkers/settled.h"

namespace bmgpu::sim {
namespace {

constexpr std::uint64_t kTenants = 6;
// An end is carried out by whatever hand is left within this.
constexpr Duration kEndPatience = seconds(30);
// Within this, a market without faults has got hold of everything again.
constexpr Duration kRecovery = seconds(240);
constexpr Duration kLookEvery = seconds(5);

const World* running_world = nullptr;

class Run {
 public:
  Run(std::uint64_t seed, const WorldOptions& options)
      : seed_(seed), world_(seed, options), nemesis_(world_), operator_(world_) {
    for (std::uint64_t n = 1; n <= kTenants; ++n) {
      tenants_.push_back(std::make_unique<Tenant>(world_, AccountId(n)));
    }
    tenants_.push_back(std::make_unique<Tenant>(world_, SimNode::owner_of(NodeId(1))));
    running_world = &world_;
  }
  ~Run() { running_world = nullptr; }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  SeedResult run() {
    world_.start_market();
    for (const auto& [id, node] : world_.nodes) {
      node->boot();
    }
    operator_.start();
    for (const auto& tenant : tenants_) {
      tenant->start();
    }
    nemesis_.start();
    look();
    const Instant safe_until = kWorldStart + kSafetyPhase;
    const Instant end = safe_until + kLivenessPhase;
    run_until(safe_until);
    nemesis_.end();
    operator_.resume_all();
    // Once more, when what was under way before has arrived.
    world_.timeline.after(seconds(30), [this] { operator_.resume_all(); });
    run_until(end - minutes(1));
    wait_for_rest(end);
    return result();
  }

 private:
  void run_until(Instant until) {
    while (!world_.verdict.failed() && world_.timeline.step(until)) {
    }
  }

  void look() {
    world_.timeline.after(kLookEvery, [this] { look(); });
    const bool recovered = world_.now() > kWorldStart + kSafetyPhase + kRecovery;
    world_.containers.check_ends(world_.now(), kEndPatience, recovered);
  }

  // At some instant of the last minute everything rests; what is stuck never does.
  void wait_for_rest(Instant end) {
    std::optional<std::string> problem;
    while (!world_.verdict.failed() && world_.now() < end) {
      run_until(world_.now() + milliseconds(500));
      problem = world_.market ? unsettled(world_.market->state(), world_.containers, world_.now())
                              : std::optional<std::string>("the market is down");
      if (!problem) {
        return run_until(end);
      }
    }
    if (problem) {
      world_.fail("settled", *problem);
    }
  }

  SeedResult result() {
    SeedResult result;
    result.seed = seed_;
    result.actions = world_.timeline.actions_run();
    result.core_events = world_.core_events;
    result.violation = world_.verdict.violation();
    Digest digest;
    digest.add(world_.trace.digest());
    if (world_.market) {
      core::check_invariants(world_.market->state());
      digest.add(core::digest(world_.market->state()));
    }
    result.digest = digest.value();
    if (result.violation) {
      result.trace = world_.trace.lines(kWorldStart);
    }
    return result;
  }

  const std::uint64_t seed_;
  World world_;
  Nemesis nemesis_;
  Operator operator_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
};

}  // namespace

SeedResult run_seed(std::uint64_t seed, const WorldOptions& options) {
  return Run(seed, options).run();
}

std::vector<std::string> last_trace() {
  return running_world == nullptr ? std::vector<std::string>()
                                  : running_world->trace.lines(kWorldStart);
}

}  // namespace bmgpu::sim
