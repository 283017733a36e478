// A network between the market and one node, and the connections over it.
//
// A Stream behaves like TCP: what arrives, arrives once and in order; what a cut delays arrives
// when it heals, unless the connection broke meanwhile; when it breaks, each end may have got a
// different prefix and learns of it at a time of its own. Reordering and repetition happen between
// connections, as in real life: frames of an old one may arrive while a new one is open.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "sim/engine/timeline.h"

namespace bmgpu::sim {

enum class End : std::uint8_t { Market, Node };
constexpr End other(End end) { return end == End::Market ? End::Node : End::Market; }

struct Latency {
  Duration usual_max = milliseconds(20);   // uniform from 1 ms
  std::uint64_t slow_permille = 0;         // of messages
  Duration slow_max = milliseconds(2000);  // what a slow one takes at most
};

class Stream;

// One node's way to the market. Its two directions are cut and healed independently.
class Link {
 public:
  Link(Timeline& timeline, std::uint64_t seed) : timeline_(timeline), random_(seed) {}

  void set_latency(Latency latency) { latency_ = latency; }
  bool is_cut(End toward) const { return cut_[index(toward)]; }
  // Streams over a direction that stays cut for long break, each when its keep-alive says so.
  void cut(End toward);
  void heal(End toward);
  void break_streams();

  std::shared_ptr<Stream> connect();
  Timeline& timeline() { return timeline_; }
  Prng& random() { return random_; }
  Duration draw_latency();

 private:
  friend class Stream;
  static std::size_t index(End end) { return static_cast<std::size_t>(end); }
  std::vector<std::shared_ptr<Stream>> living();

  Timeline& timeline_;
  Prng random_;
  Latency latency_;
  std::array<bool, 2> cut_{};
  std::vector<std::weak_ptr<Stream>> streams_;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Action = Timeline::Action;

  explicit Stream(Link& link) : link_(link) {}

  // Runs `deliver` at the other end when the message arrives, if it does.
  void send(End from, Action deliver);
  // Told once, unless that end closed it.
  void on_closed(End end, Action action) { sides_[index(end)].on_closed = std::move(action); }
  bool is_open(End end) const { return sides_[index(end)].open; }

  // By `end`, in good order or because its process died. What is under way to the other end still
  // arrives.
  void close(End end);
  // The connection is gone; each end gets what is drawn of what was under way.
  void snap();

 private:
  friend class Link;
  struct Side {
    bool open = true;
    bool cut_off = false;  // nothing of what is under way arrives any more
    Instant last_arrival{};
    std::deque<Action> held;  // while its direction is cut
    Action on_closed;
  };
  static std::size_t index(End end) { return Link::index(end); }
  void deliver(End to, Action action);
  void learn(End end, Duration after);
  void flush(End toward);

  Link& link_;
  std::array<Side, 2> sides_;
  bool snapped_ = false;
};

}  // namespace bmgpu::sim
