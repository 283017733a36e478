// What goes wrong, at the seed's rates; and how it all ends.
#pragma once

#include <functional>

#include "base/prng.h"
#include "sim/chaos/world.h"

namespace bmgpu::sim {

class Nemesis {
 public:
  explicit Nemesis(World& world) : world_(world), random_(world.random.next()) {}
  void start();
  // No fault from now on, and everything that is broken is whole again.
  void end();

 private:
  void again_and_again(Duration mean, std::function<void()> fault);
  SimNode& some_node();
  Link& some_link();
  void crash_market();
  void cut(Link& link, End toward, Duration length);

  World& world_;
  Prng random_;
};

}  // namespace bmgpu::sim
