// Durable events per second of the SQLite journal, by how many orders share one commit, and how
// fast the history projection follows. An order is what the HTTP edge writes for one: 2 events, 1
// document, 1 stored answer. Prints one JSON object on standard output.
//
//   bench_store [--json] [--seconds N] [--dir DIR]
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "store/sqlite/sqlite_history.h"
#include "store/sqlite/sqlite_journal.h"

namespace {

namespace core = bmgpu::core;
namespace store = bmgpu::store;
using bmgpu::Sequence;
using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 2;
  std::string dir = ".";
};

// A folder that is gone when the benchmark ends.
class Scratch {
 public:
  explicit Scratch(const std::string& parent) : path_(parent + "/bench-store-XXXXXX") {
    bmgpu::check(::mkdtemp(path_.data()) != nullptr, "bench: no folder to write to");
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Orders {
 public:
  // The next `count` orders as one batch; its buffers are used again.
  const store::Batch& next(std::size_t count) {
    batch_.at = bmgpu::Instant(1'796'000'000'000 + static_cast<std::int64_t>(last_));
    batch_.events.clear();
    batch_.documents.resize(count);
    batch_.answers.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      ++last_;
      batch_.events.push_back(queued());
      batch_.events.push_back(granted());
      store::Document& document = batch_.documents[i];
      document.kind = "job";
      document.id = last_;
      document.account = bmgpu::AccountId(1 + last_ % 100);
      document.bytes.assign(400, 'j');
      store::StoredAnswer& answer = batch_.answers[i];
      answer.account = document.account;
      answer.key = random_key();
      answer.answer.assign(350, 'a');
      answer.at = batch_.at;
    }
    return batch_;
  }

 private:
  core::OrderQueued queued() const {
    core::Order order;
    order.id = bmgpu::OrderId(last_);
    order.tenant = bmgpu::AccountId(1 + last_ % 100);
    order.resources = {2, "a100", 0, 0, 0, 0};
    order.duration = bmgpu::hours(2);
    order.placed = batch_.at;
    return {order};
  }

  core::LeaseGranted granted() const {
    core::Lease lease;
    lease.id = bmgpu::LeaseId(last_);
    lease.order = bmgpu::OrderId(last_);
    lease.tenant = bmgpu::AccountId(1 + last_ % 100);
    lease.gpu_class = bmgpu::ClassId(1);
    lease.gpus = 2;
    lease.start = batch_.at;
    lease.end = batch_.at + bmgpu::hours(2);
    lease.slot_prices.assign(9, bmgpu::Price(1'234'567));
    core::RankPlacement rank;
    rank.node = bmgpu::NodeId(1 + last_ % 1000);
    rank.items = {{bmgpu::GpuId(last_ * 2), 1000, 81920},
                  {bmgpu::GpuId(last_ * 2 + 1), 1000, 81920}};
    lease.allocations = {{lease.start, lease.end, {rank}}};
    lease.attempts = {core::Attempt()};
    lease.quoted = bmgpu::Money(11'111'103);
    return {lease};
  }

  // As clients make them: without any order, so that each lands somewhere else in the index.
  std::string random_key() {
    std::string key(36, '-');
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = "0123456789abcdef"[prng_.below(16)];
    }
    return key;
  }

  store::Batch batch_;
  std::uint64_t last_ = 0;
  bmgpu::Prng prng_{1};
};

struct Figures {
  double orders_per_s = 0;
  double commits_per_s = 0;
  double commit_p50_us = 0;
  double commit_p99_us = 0;
  double cpu_us_per_order = 0;
};

double at_fraction(std::vector<double>& sorted, double fraction) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(fraction * static_cast<double>(sorted.size())))];
}

double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Only the time inside append() counts: making the orders is the benchmark's own work.
Figures measure(store::Journal& journal, Orders& orders, std::size_t per_commit, double seconds,
                Sequence& last) {
  std::vector<double> commits_us;
  double total_us = 0;
  double total_cpu_us = 0;
  while (total_us < seconds * 1e6) {
    const store::Batch& batch = orders.next(per_commit);
    const double cpu_before = cpu_us();
    const auto start = Clock::now();
    const bmgpu::Result<Sequence> appended = journal.append(batch, last);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    total_cpu_us += cpu_us() - cpu_before;
    bmgpu::check(appended.ok(), "bench: a commit failed");
    last = *appended;
    commits_us.push_back(took.count());
    total_us += took.count();
  }
  std::sort(commits_us.begin(), commits_us.end());
  const auto commits = static_cast<double>(commits_us.size());
  const double order_count = commits * static_cast<double>(per_commit);
  return {order_count / total_us * 1e6, commits / total_us * 1e6, at_fraction(commits_us, 0.5),
          at_fraction(commits_us, 0.99), total_cpu_us / order_count};
}

// Events per second that the history projection follows with, in applies of 4,096 events.
double measure_history(const std::string& path, store::Journal& journal, double seconds) {
  bmgpu::Result<std::unique_ptr<store::HistoryWriter>> history = store::open_history_writer(path);
  bmgpu::check(history.ok(), "bench: no history");
  double total_s = 0;
  std::size_t applied = 0;
  while (total_s < seconds) {
    const bmgpu::Result<std::vector<store::Recorded>> events =
        journal.read((*history)->applied(), 4096);
    bmgpu::check(events.ok(), "bench: the journal cannot be read");
    if (events->empty()) {
      break;
    }
    const auto start = Clock::now();
    bmgpu::check((*history)->apply(*events).ok(), "bench: the history failed");
    total_s += std::chrono::duration<double>(Clock::now() - start).count();
    applied += events->size();
  }
  return static_cast<double>(applied) / total_s;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name(argv[i]);
    if (name == "--json") {
      continue;  // it prints nothing else
    }
    bmgpu::check(i + 1 < argc && (name == "--seconds" || name == "--dir"),
                 "usage: bench_store [--json] [--seconds N] [--dir DIR]");
    const char* value = argv[++i];
    if (name == "--dir") {
      options.dir = value;
    } else {
      options.seconds = std::atof(value);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const Scratch scratch(options.dir);
  bmgpu::Result<std::unique_ptr<store::Journal>> journal =
      store::open_sqlite_journal(scratch.file("journal.db"));
  bmgpu::check(journal.ok() && (*journal)->load().ok(), "bench: no journal");
  Orders orders;
  Sequence last;
  std::printf("{\"bench\": \"store\"");
  for (const std::size_t per_commit : {std::size_t{1}, std::size_t{64}, std::size_t{512}}) {
    const Figures figures = measure(**journal, orders, per_commit, options.seconds, last);
    std::printf(
        ", \"by_%zu\": {\"orders_per_s\": %.0f, \"events_per_s\": %.0f, \"commits_per_s\": %.0f,"
        " \"commit_p50_us\": %.0f, \"commit_p99_us\": %.0f, \"cpu_us_per_order\": %.1f}",
        per_commit, figures.orders_per_s, 2 * figures.orders_per_s, figures.commits_per_s,
        figures.commit_p50_us, figures.commit_p99_us, figures.cpu_us_per_order);
  }
  std::printf(", \"history_events_per_s\": %.0f",
              measure_history(scratch.file("history.db"), **journal, options.seconds));
  const store::SyncLatency& latency = (*journal)->sync_latency();
  utsname system{};
  ::uname(&system);
  std::printf(
      ", \"conditions\": {\"fsync_probe_p50_us\": %lld, \"sync_mean_us\": %.0f,"
      " \"sync_max_us\": %lld, \"cores\": %u, \"kernel\": \"%s\", \"seconds_per_figure\": %g}}\n",
      static_cast<long long>(latency.probe_p50_us),
      static_cast<double>(latency.total_us) /
          static_cast<double>(std::max<std::uint64_t>(1, latency.syncs)),
      static_cast<long long>(latency.max_us), std::thread::hardware_concurrency(), system.release,
      options.seconds);
  return 0;
}
