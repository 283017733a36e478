// From the order to the job's first line, on this machine: our shim against the same container
// made by plain libpod calls (create, start) in the same run, alternating. Needs root and podman.
//
//   bench_start [--json] [--runs N] [--network none|nat]
//
// "First line" is the time stamp that conmon gave it. The engine's own figure has the image, limits
// and mounts of ours but neither scratch, network, device check nor status files.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "agent/host/facts.h"
#include "agent/runtime/container.h"
#include "agent/runtime/files.h"
#include "agent/runtime/log_tail.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/runtime.h"
#include "agent/runtime/service.h"
#include "agent/runtime/shim.h"
#include "agent/runtime/subprocess.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

using std::chrono::seconds;

constexpr char kImage[] = "localhost/bench:1";
constexpr std::int64_t kScratchMib = 1024;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bench_start: %s\n", why.c_str());
  std::exit(1);
}
template <typename T>
T must(Result<T> outcome) {
  if (!outcome.ok()) {
    fail(outcome.error().message);
  }
  return std::move(*outcome);
}
void must(const Result<void>& outcome) {
  if (!outcome.ok()) {
    fail(outcome.error().message);
  }
}

// Milliseconds with a fraction: conmon's stamps are finer than those of LogEntry.
double wall_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double first_line_ms(const std::string& log_path) {
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (std::chrono::steady_clock::now() < end) {
    LogTail tail(log_path);
    const Result<std::vector<LogEntry>> lines = tail.read(1, 1000);
    if (lines.ok() && !lines->empty()) {
      // LogEntry is cut to milliseconds; half of one is its mean error.
      return static_cast<double>(lines->front().time_unix_ms) + 0.5;
    }
    ::poll(nullptr, 0, 1);
  }
  fail("no first line within 30 s: " + log_path);
}

std::string make_image(const std::string& dir) {
  const std::string root = dir + "/root";
  for (const char* folder : {"/bin", "/etc", "/dev", "/proc", "/sys", "/tmp"}) {
    must(make_dirs(root + folder, 0755));
  }
  must(run_ok({"cp", must(find_program("busybox")), root + "/bin/busybox"}));
  must(::symlink("busybox", (root + "/bin/echo").c_str()) == 0 ? Result<void>()
                                                               : errno_error("symlink", errno));
  must(run_ok({"tar", "-C", root, "-cf", dir + "/image.tar", "."}));
  RunOptions slow;
  slow.deadline = seconds(60);
  must(run_ok({"podman", "--root", dir + "/store", "--runroot", dir + "/store-run", "--tmpdir",
               dir + "/store-tmp", "--cgroup-manager=cgroupfs", "--events-backend=none",
               "--storage-driver=overlay", "import", dir + "/image.tar", kImage},
              slow));
  (void)run({"umount", "-l", dir + "/store/overlay"}).ok();
  return dir + "/store";
}

double engine_run(Runtime& runtime, const std::string& dir, int number) {
  const v1::RuntimeFacts facts = runtime.facts();
  const Podman podman(runtime.socket());
  ContainerSpec spec;
  spec.name = "bench-" + std::to_string(number);
  spec.image = kImage;
  spec.entrypoint = {"/bin/echo"};
  spec.command = {"first"};
  spec.log_path = dir + "/engine-" + std::to_string(number) + ".log";
  spec.mounts = {{dir, "/scratch", false}};
  spec.cgroup_parent = cgroup_parent(facts);
  spec.cpu_millis = 1000;
  spec.memory_bytes = std::int64_t{256} << 20;
  spec.limit_swap = facts.swap_limit();
  spec.pids = 64;
  spec.nofile = facts.nofile_max();
  spec.nproc = facts.nproc_max();
  const double begin = wall_ms();
  const std::string id = must(podman.create(spec));
  must(podman.start(id));
  const double took = first_line_ms(spec.log_path) - begin;
  must(destroy_container(facts, podman, id, seconds(20)));
  return took;
}

// "… ms: scratch=8.0 network=12.1 …" of shim.log.
std::map<std::string, double> steps_of(const std::string& shim_log) {
  std::map<std::string, double> out;
  const std::size_t at = shim_log.find("ms: ");
  std::istringstream words(at == std::string::npos ? "" : shim_log.substr(at + 4));
  for (std::string word; words >> word;) {
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      out[word.substr(0, equals)] = std::strtod(word.c_str() + equals + 1, nullptr);
    }
  }
  return out;
}

double shim_run(Runtime& runtime, const std::string& state_dir, int number, bool nat,
                std::map<std::string, std::vector<double>>& steps) {
  must(runtime.refill_scratch({kScratchMib}, 1));
  v1::AttemptSpec spec;
  spec.set_lease("lease-" + std::to_string(number + 1));
  spec.set_attempt(1);
  spec.set_cpu_millis(1000);
  spec.set_memory_mib(256);
  spec.set_scratch_mib(kScratchMib);
  spec.set_pids(64);
  spec.set_lease_end_unix_ms(unix_ms() + 3'600'000);
  spec.mutable_job()->set_image(kImage);
  spec.mutable_job()->set_network(nat ? v1::NETWORK_MODE_NAT : v1::NETWORK_MODE_NONE);
  spec.mutable_job()->add_command("/bin/echo");
  spec.mutable_job()->add_command("first");
  const AttemptDir dir(state_dir, {spec.lease(), 0, 1});
  std::string program(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", program.data(), program.size());
  program.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  const double begin = wall_ms();
  must(dir.create());
  must(dir.write_order(runtime.order(spec, {})));
  must(spawn_shim(dir, {program, "--shim"}));
  const double took = first_line_ms(dir.log_path()) - begin;
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  Result<v1::AttemptStatus> status = dir.read_status();
  while (!status.ok() || status->phase() != v1::ATTEMPT_PHASE_ENDED || dir.shim_alive()) {
    if (std::chrono::steady_clock::now() > end) {
      fail("the job did not end: " + dir.path());
    }
    ::poll(nullptr, 0, 2);
    status = dir.read_status();
  }
  for (const auto& [step, ms] : steps_of(must(read_file(dir.file("shim.log"))))) {
    steps[step].push_back(ms);
  }
  must(dir.remove());
  return took;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<std::size_t>(q * double(values.size() - 1) + 0.5)];
}

int bench(int runs, bool nat) {
  std::string base = "/tmp/bm-bench-start-XXXXXX";
  if (::mkdtemp(base.data()) == nullptr) {
    fail("mkdtemp");
  }
  RuntimeOptions options;
  options.state_dir = base + "/state";
  options.market = "00000000000000bb";
  options.node = "bench";
  options.image_stores = {make_image(base)};
  if (const char* init = std::getenv("BM_INIT")) {
    options.init_path = init;
  } else {
    options.init_path = BM_INIT_PATH;
  }
  const std::unique_ptr<Runtime> runtime = must(Runtime::create(options));
  must(runtime->canary(seconds(30)));
  std::vector<double> engine;
  std::vector<double> shim;
  std::map<std::string, std::vector<double>> steps;
  for (int i = -1; i < runs; ++i) {  // the first pair warms up
    const double plain = engine_run(*runtime, base, i + 1);
    const double ours = shim_run(*runtime, options.state_dir, i + 1, nat, steps);
    if (i < 0) {
      steps.clear();
      continue;
    }
    engine.push_back(plain);
    shim.push_back(ours);
  }
  const std::string summary = runtime->summary();
  must(runtime->remove_all());
  must(remove_tree(base));
  std::printf(
      "{\"bench\":\"start\",\"runs\":%d,\"network\":\"%s\",\"runtime\":\"%s\","
      "\"cpus\":%u,\"engine_p50_ms\":%.1f,\"engine_p99_ms\":%.1f,\"shim_p50_ms\":%.1f,"
      "\"shim_p99_ms\":%.1f,\"shim_above_engine_p50_ms\":%.1f,\"steps_p50_ms\":{",
      runs, nat ? "nat" : "none", summary.c_str(), std::thread::hardware_concurrency(),
      quantile(engine, 0.5), quantile(engine, 0.99), quantile(shim, 0.5), quantile(shim, 0.99),
      quantile(shim, 0.5) - quantile(engine, 0.5));
  const char* comma = "";
  for (const auto& [step, values] : steps) {
    std::printf("%s\"%s\":%.1f", comma, step.c_str(), quantile(values, 0.5));
    comma = ",";
  }
  std::printf("}}\n");
  return 0;
}

}  // namespace
}  // namespace bmgpu::agent

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--shim") == 0) {
    return bmgpu::agent::shim_main(argv[2]);
  }
  int runs = 20;
  bool nat = true;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      runs = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--network") == 0 && i + 1 < argc) {
      nat = std::strcmp(argv[++i], "none") != 0;
    } else if (std::strcmp(argv[i], "--json") != 0) {
      std::fprintf(stderr, "usage: bench_start [--json] [--runs N] [--network none|nat]\n");
      return 2;
    }
  }
  if (runs < 1 || runs > 1000) {
    std::fprintf(stderr, "bench_start: --runs is 1 to 1000\n");
    return 2;
  }
  return bmgpu::agent::bench(runs, nat);
}
