#include "sim/engine/stream.h"

#include <algorithm>
#include <utility>

namespace bmgpu::sim {
namespace {

// How long an end takes to notice that the other is gone when nothing comes through.
constexpr std::int64_t kKeepAliveMsMin = 3'000;
constexpr std::int64_t kKeepAliveMsMax = 20'000;

}  // namespace

Duration Link::draw_latency() {
  if (latency_.slow_permille > 0 && random_.chance(latency_.slow_permille, 1000)) {
    return milliseconds(random_.between(1, latency_.slow_max.count()));
  }
  return milliseconds(random_.between(1, latency_.usual_max.count()));
}

std::vector<std::shared_ptr<Stream>> Link::living() {
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& stream) { return stream.expired(); });
  std::vector<std::shared_ptr<Stream>> living;
  for (const std::weak_ptr<Stream>& stream : streams_) {
    living.push_back(stream.lock());
  }
  return living;
}

std::shared_ptr<Stream> Link::connect() {
  auto stream = std::make_shared<Stream>(*this);
  living();
  streams_.push_back(stream);
  return stream;
}

void Link::cut(End toward) {
  cut_[index(toward)] = true;
  for (const std::shared_ptr<Stream>& stream : living()) {
    const Duration patience = milliseconds(random_.between(kKeepAliveMsMin, kKeepAliveMsMax));
    timeline_.after(patience, [this, toward, weak = std::weak_ptr<Stream>(stream)] {
      const std::shared_ptr<Stream> alive = weak.lock();
      if (alive && is_cut(toward)) {
        alive->snap();
      }
    });
  }
}

void Link::heal(End toward) {
  cut_[index(toward)] = false;
  for (const std::shared_ptr<Stream>& stream : living()) {
    stream->flush(toward);
  }
}

void Link::break_streams() {
  for (const std::shared_ptr<Stream>& stream : living()) {
    stream->snap();
  }
}

void Stream::send(End from, Action deliver_it) {
  const End to = other(from);
  Side& side = sides_[index(to)];
  if (!sides_[index(from)].open || snapped_) {
    return;
  }
  if (link_.is_cut(to) || !side.held.empty()) {
    side.held.push_back(std::move(deliver_it));
    return;
  }
  deliver(to, std::move(deliver_it));
}

void Stream::deliver(End to, Action action) {
  Side& side = sides_[index(to)];
  side.last_arrival = std::max(side.last_arrival, link_.timeline().now() + link_.draw_latency());
  link_.timeline().at(side.last_arrival,
                      [self = shared_from_this(), to, action = std::move(action)] {
                        const Side& end = self->sides_[index(to)];
                        if (end.open && !end.cut_off) {
                          action();
                        }
                      });
}

void Stream::flush(End toward) {
  Side& side = sides_[index(toward)];
  std::deque<Action> held = std::exchange(side.held, {});
  for (Action& action : held) {
    if (!snapped_) {
      deliver(toward, std::move(action));
    }
  }
}

void Stream::learn(End end, Duration after) {
  link_.timeline().after(after, [self = shared_from_this(), end] {
    Side& side = self->sides_[index(end)];
    if (!side.open) {
      return;
    }
    side.open = false;
    const Action told = std::exchange(side.on_closed, nullptr);
    if (told) {
      told();
    }
  });
}

void Stream::close(End end) {
  Side& side = sides_[index(end)];
  if (!side.open) {
    return;
  }
  side.open = false;
  side.on_closed = nullptr;
  const End to = other(end);
  const bool hears = !link_.is_cut(to);
  const Duration after =
      hears ? std::max(sides_[index(to)].last_arrival - link_.timeline().now(), Duration()) +
                  link_.draw_latency()
            : milliseconds(link_.random().between(kKeepAliveMsMin, kKeepAliveMsMax));
  learn(to, after);
}

void Stream::snap() {
  if (snapped_) {
    return;
  }
  snapped_ = true;
  for (const End end : {End::Market, End::Node}) {
    sides_[index(end)].held.clear();
    const Duration after = milliseconds(link_.random().between(0, 5'000));
    link_.timeline().after(
        milliseconds(link_.random().between(0, 200)),
        [self = shared_from_this(), end] { self->sides_[index(end)].cut_off = true; });
    learn(end, after);
  }
}

}  // namespace bmgpu::sim
