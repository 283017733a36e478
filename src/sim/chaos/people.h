// Tenants, owners and operators: what they ask for, and the way their requests take. A request may
// be lost, late or repeated, its answer too; its caller repeats it with the same key until it is
// answered or no longer worth it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "sim/chaos/frames.h"

namespace bmgpu::sim {

struct World;

class Caller {
 public:
  using OnReply = std::function<void(const Reply&)>;

  Caller(World& world, AccountId account) : world_(world), account_(account), random_(0) { seed(); }
  void ask(Call call, OnReply on_reply);
  AccountId account() const { return account_; }
  Prng& random() { return random_; }

 private:
  struct Pending {
    Request request;
    OnReply on_reply;
    int tries = 0;
  };
  void seed();
  void send(const std::string& key);
  void arrive(const Request& request);
  void answered(const Request& request, const Reply& reply);
  bool is_lost();
  Duration travel();

  World& world_;
  const AccountId account_;
  Prng random_;
  std::uint64_t next_key_ = 1;
  std::map<std::string, Pending> pending_;
};

class Tenant {
 public:
  Tenant(World& world, AccountId account) : world_(world), caller_(world, account) {}
  void start();

 private:
  void act();
  void place(QuoteId quote, const core::Resources& resources, Duration duration);
  void quote_then_place();
  void stop_one();
  void extend_one();
  core::Resources draw_resources();
  Duration draw_duration();
  Price draw_limit();

  World& world_;
  Caller caller_;
  std::vector<OrderId> mine_;
};

// Drains and resumes nodes, changes prices and floors, and confirms sets that nodes hold.
class Operator {
 public:
  explicit Operator(World& world) : world_(world), caller_(world, AccountId(2000)) {}
  void start();
  void resume_all();

 private:
  void act();
  void look_at_held_nodes();
  void change_prices();

  World& world_;
  Caller caller_;
};

}  // namespace bmgpu::sim
