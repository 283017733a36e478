#include "controld/projection.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <span>

#include "controld/thread_name.h"

namespace bmgpu::controld {
namespace {

constexpr int kNice = 10;
constexpr std::chrono::milliseconds kGather{50};  // one apply for all that comes meanwhile
constexpr std::size_t kApplyMax = 2'000;
constexpr std::size_t kRefillEvents = 10'000;
constexpr std::chrono::seconds kDurableEvery{5};

}  // namespace

Projection::Projection(std::unique_ptr<store::HistoryWriter> history, Sequence last, wire::Log& log)
    : history_(std::move(history)),
      log_(log),
      applied_(history_->applied().value()),
      durable_(history_->applied().value()),
      fed_(last),
      last_(last),
      thread_([this] { run(); }) {}

Projection::~Projection() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Projection::feed(const Turn& turn, Sequence last) {
  const std::size_t count = turn.batch().events.size();
  const bool gap = fed_ != last_;
  last_ = last;
  if (count == 0 || gap || held_.load(std::memory_order_relaxed) + count > kQueuedEventsMax) {
    return;
  }
  std::vector<store::Recorded> events;
  events.reserve(count);
  std::uint64_t sequence = last.value() - count;
  for (const core::Event& event : turn.batch().events) {
    events.push_back({Sequence(++sequence), turn.batch().at, event});
  }
  fed_ = last;
  enqueue(std::move(events));
}

void Projection::refill(store::Journal& journal) {
  if (fed_ == last_ || held_.load(std::memory_order_relaxed) + kRefillEvents > kQueuedEventsMax) {
    return;
  }
  Result<std::vector<store::Recorded>> events = journal.read(fed_, kRefillEvents);
  if (!events || events->empty()) {
    return;
  }
  fed_ = events->back().sequence;
  enqueue(std::move(*events));
}

void Projection::enqueue(std::vector<store::Recorded> events) {
  held_.fetch_add(events.size(), std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);  // no wake: it looks every kGather
  queue_.insert(queue_.end(), std::make_move_iterator(events.begin()),
                std::make_move_iterator(events.end()));
}

void Projection::run() {
  name_thread("bmd-history");
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  auto last_durable = std::chrono::steady_clock::now();
  for (;;) {
    std::vector<store::Recorded> events;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kGather, [this] { return stopping_; });
      events.swap(queue_);
      stopping = stopping_;
    }
    std::span<const store::Recorded> rest(events);
    while (!rest.empty()) {
      const std::span<const store::Recorded> part = rest.first(std::min(rest.size(), kApplyMax));
      const Result<void> applied = history_->apply(part);
      if (!applied) {
        log_.error("history cannot be written", {{"reason", applied.error().message}});
        break;
      }
      applied_.store(history_->applied().value(), std::memory_order_release);
      rest = rest.subspan(part.size());
      held_.fetch_sub(part.size(), std::memory_order_relaxed);
    }
    if (!rest.empty()) {  // tried again with the next round
      const std::lock_guard lock(mutex_);
      queue_.insert(queue_.begin(), rest.begin(), rest.end());
    }
    const auto now = std::chrono::steady_clock::now();
    if (stopping || now - last_durable >= kDurableEvery) {
      last_durable = now;
      const Result<Sequence> durable = history_->make_durable();
      if (durable) {
        durable_.store(durable->value(), std::memory_order_release);
      }
    }
    if (stopping) {
      return;
    }
  }
}

}  // namespace bmgpu::controld
