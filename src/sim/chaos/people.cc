#include "sim/chaos/people.h"

#include <algorithm>
#include <utility>

#include "sim/chaos/market_process.h"
#include "sim/chaos/sim_node.h"

namespace bmgpu::sim {
namespace {

constexpr int kTriesMax = 8;

}  // namespace

// --- the way of a request ---

void Caller::seed() { random_ = Prng(world_.random.next()); }

bool Caller::is_lost() {
  return world_.faults && random_.chance(world_.rates.request_loss_permille, 1000);
}

Duration Caller::travel() {
  const bool slow = world_.faults && random_.chance(world_.rates.slow_permille, 1000);
  return milliseconds(random_.between(1, slow ? 8000 : 60));
}

void Caller::ask(Call call, OnReply on_reply) {
  const std::string key = "k" + std::to_string(next_key_++);
  pending_[key] = {Request{account_, key, std::move(call)}, std::move(on_reply), 0};
  send(key);
}

void Caller::send(const std::string& key) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) {
    return;
  }
  if (found->second.tries++ >= kTriesMax) {
    pending_.erase(found);
    return;
  }
  const bool repeated = world_.faults && random_.chance(world_.rates.request_repeat_permille, 1000);
  for (int copy = 0; copy < (repeated ? 2 : 1); ++copy) {
    if (!is_lost()) {
      world_.timeline.after(travel(), [this, request = found->second.request] { arrive(request); });
    }
  }
  world_.timeline.after(seconds(random_.between(3, 6)), [this, key] { send(key); });
}

void Caller::arrive(const Request& request) {
  if (world_.market == nullptr) {
    return;
  }
  world_.market->take(request, [this, request](const Reply& reply) {
    if (!is_lost()) {
      world_.timeline.after(travel(), [this, request, reply] { answered(request, reply); });
    }
  });
}

void Caller::answered(const Request& request, const Reply& reply) {
  world_.promises.answered(request, reply, world_.now());
  const auto found = pending_.find(request.key);
  if (found == pending_.end() || !reply.available) {
    return;
  }
  const OnReply on_reply = std::move(found->second.on_reply);
  pending_.erase(found);
  on_reply(reply);
}

// --- tenants ---

void Tenant::start() {
  world_.timeline.after(seconds(caller_.random().between(1, 20)), [this] { act(); });
}

void Tenant::act() {
  if (!world_.faults) {
    return;
  }
  world_.timeline.after(milliseconds(caller_.random().between(1'000, 40'000)), [this] { act(); });
  const std::uint64_t what = caller_.random().below(100);
  if (what < 45) {
    place(QuoteId(), draw_resources(), draw_duration());
  } else if (what < 62) {
    quote_then_place();
  } else if (what < 82) {
    stop_one();
  } else {
    extend_one();
  }
}

core::Resources Tenant::draw_resources() {
  Prng& random = caller_.random();
  static constexpr std::array<const char*, 6> kWords{"", "", "h100", "a100 80gb", "l4", "b200"};
  core::Resources resources;
  resources.gpus = random.chance(1, 2) ? 1 : std::int64_t{1} << random.between(0, 4);
  resources.gpu_words = kWords[random.below(random.chance(1, 10) ? 6 : 5)];
  resources.cpu_millis = random.chance(1, 6) ? random.between(1'000, 40'000) : 0;
  resources.memory_mib = random.chance(1, 6) ? random.between(1'000, 300'000) : 0;
  return resources;
}

Duration Tenant::draw_duration() {
  Prng& random = caller_.random();
  return random.chance(1, 20) ? milliseconds(random.between(-5, 70'000))
                              : seconds(random.between(60, 1200));
}

Price Tenant::draw_limit() {
  Prng& random = caller_.random();
  return random.chance(1, 2) ? Price() : Price(random.between(20'000, 1'500'000));
}

void Tenant::place(QuoteId quote, const core::Resources& resources, Duration duration) {
  core::PlaceOrder command;
  command.tenant = caller_.account();
  command.resources = resources;
  command.duration = duration;
  command.quote = quote;
  command.price_limit = quote.is_none() ? draw_limit() : Price();
  command.refuse_if_unavailable = caller_.random().chance(1, 5);
  command.restart =
      caller_.random().chance(1, 4) ? core::RestartPolicy::Never : core::RestartPolicy::HostFailure;
  caller_.ask(core::Command(command), [this](const Reply& reply) {
    if (!reply.refused) {
      mine_.push_back(reply.order);
    }
    // Some change their mind at once.
    if (!reply.refused && caller_.random().chance(1, 12)) {
      stop_one();
    }
  });
}

void Tenant::quote_then_place() {
  const core::Resources resources = draw_resources();
  const Duration duration = draw_duration();
  const core::RequestQuote command{caller_.account(), resources, duration, draw_limit()};
  caller_.ask(core::Command(command), [this, resources, duration](const Reply& reply) {
    if (reply.refused) {
      return;
    }
    const Duration thinks = milliseconds(caller_.random().between(0, 70'000));
    world_.timeline.after(thinks, [this, resources, duration, quote = reply.quote] {
      if (world_.faults) {
        place(quote, resources, duration);
      }
    });
  });
}

void Tenant::stop_one() {
  if (mine_.empty()) {
    return;
  }
  const OrderId order = mine_[caller_.random().below(mine_.size())];
  const bool last = caller_.random().chance(1, 2);
  caller_.ask(core::Command(core::StopOrder{caller_.account(), last ? mine_.back() : order}),
              [](const Reply&) {});
}

void Tenant::extend_one() {
  if (mine_.empty()) {
    return;
  }
  const std::size_t newest = std::min<std::size_t>(mine_.size(), 6);
  const OrderId order = mine_[mine_.size() - 1 - caller_.random().below(newest)];
  const core::ExtendLease command{caller_.account(), order,
                                  seconds(caller_.random().between(30, 900)), draw_limit()};
  caller_.ask(core::Command(command), [](const Reply&) {});
}

// --- operators ---

void Operator::start() {
  change_prices();
  world_.timeline.after(seconds(60), [this] { act(); });
  world_.timeline.after(seconds(15), [this] { look_at_held_nodes(); });
}

void Operator::look_at_held_nodes() {
  world_.timeline.after(seconds(caller_.random().between(5, 20)), [this] { look_at_held_nodes(); });
  for (const auto& [id, node] : world_.nodes) {
    if (world_.market && world_.market->nodes().is_held(id)) {
      caller_.ask(ConfirmNode{id}, [](const Reply&) {});
    }
  }
}

void Operator::act() {
  if (!world_.faults) {
    return;
  }
  world_.timeline.after(seconds(caller_.random().between(20, 120)), [this] { act(); });
  const NodeId node(1 + caller_.random().below(world_.nodes.size()));
  switch (caller_.random().below(6)) {
    case 0:
      caller_.ask(core::Command(core::DrainNode{node}), [](const Reply&) {});
      break;
    case 1:
      change_prices();
      break;
    case 2:
      world_.nodes.at(node)->set_owner_floor(Price(caller_.random().between(0, 400'000)));
      break;
    default:
      caller_.ask(core::Command(core::ResumeNode{node}), [](const Reply&) {});
  }
}

void Operator::change_prices() {
  core::SetPolicy command;
  command.policy.base_prices = {{"h100", caller_.random().between(1'000'000, 4'000'000)},
                                {"a100", caller_.random().between(500'000, 2'000'000)}};
  command.policy.base_default_micros_per_gpu_hour = 300'000;
  command.policy.waiting_max = minutes(caller_.random().between(5, 120));
  command.policy.preparation_max = minutes(caller_.random().between(1, 6));
  command.policy.delisted_supply = minutes(caller_.random().between(1, 20));
  command.policy.billed_min = minutes(caller_.random().between(1, 15));
  caller_.ask(core::Command(command), [](const Reply&) {});
}

void Operator::resume_all() {
  for (const auto& [id, node] : world_.nodes) {
    caller_.ask(core::Command(core::ResumeNode{id}), [](const Reply&) {});
  }
}

}  // namespace bmgpu::sim
