// Durable order submissions per second through bmd's HTTP edge, with 1, 8 and 64 connections, and
// in core alone. Starts a real bmd with SQLite in a temporary folder ($TMPDIR decides the disk);
// the client runs on the same machine. Prints one JSON object on standard output.
//
//   bench_orders [--json] [--seconds N] [--slurm FOLDER]
//
// --slurm: a folder with the peer's bench.sh; its submit benchmark runs too and the ratio is
// printed.
#include <fcntl.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "bmgpu/v1/market.pb.h"
#include "integration/bmd_process.h"
#include "integration/fake_agent.h"
#include "order_load.h"
#include "wire/encoding.h"
#include "wire/web_address.h"

namespace bmgpu::bench {
namespace {

constexpr std::size_t kNodes = 8;
constexpr int kGpusPerNode = 8;
constexpr std::size_t kTenants = 16;

struct Options {
  int seconds = 5;
  std::string slurm;
};

// Runs a program to its end; its standard output.
std::string output_of(std::vector<std::string> words, const std::string& out_file) {
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    return "";
  }
  std::ifstream in(out_file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The number behind "name": in a JSON text; 0 if it is not there.
double number_in(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  return at == std::string::npos ? 0 : std::atof(json.c_str() + at + name.size() + 3);
}

std::string program_beside(const char* self, const std::string& relative) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (ignored ? std::filesystem::path(self) : path).parent_path() / relative;
}

std::vector<std::string> create_tenants(const integration::BmdProcess& bmd) {
  std::vector<std::string> tokens;
  const std::unique_ptr<wire::Client> client = bmd.operator_client();
  for (std::size_t i = 0; i < kTenants; ++i) {
    v1::CreateTokenRequest request;
    request.set_role(v1::ROLE_TENANT);
    request.set_name("tenant-" + std::to_string(i));
    v1::CreateTokenResponse response;
    const Result<void> created =
        client->call("bmgpu.v1.Market/CreateToken", request, response, request.name());
    check(created.ok(), "bench: no token");
    tokens.push_back(response.secret());
  }
  return tokens;
}

std::string order_body() {
  v1::PlaceOrderRequest order;
  order.mutable_resources()->set_gpus(2);
  order.mutable_resources()->set_gpu("A100");
  order.set_duration_ms(15 * 60 * 1000);
  order.mutable_job()->set_image("localhost/bench:1");
  order.mutable_job()->add_command("true");
  return wire::encode(wire::Encoding::Proto, order);
}

void wait_offered(wire::Client& client) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  v1::ListOffersResponse offers;
  while (offers.offers_size() < static_cast<int>(kNodes)) {
    check(std::chrono::steady_clock::now() < deadline, "bench: the nodes are not offered");
    const Result<void> listed =
        client.call("bmgpu.v1.Market/ListOffers", v1::ListOffersRequest(), offers);
    check(listed.ok(), "bench: no offers");
  }
}

// One fsync'ed write of 4 KiB after the other on bmd's disk: what a commit costs at least.
std::int64_t fdatasync_p50_us(const std::string& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  std::vector<std::int64_t> times;
  for (int i = 0; i < 101; ++i) {
    const auto start = std::chrono::steady_clock::now();
    check(pwrite(fd, block.data(), block.size(), i * 4096) == 4096, "bench: cannot write");
    fdatasync(fd);
    times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count());
  }
  close(fd);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// The peer's submissions per second with 8 connections; 0 if it cannot run here.
double slurm_per_second(const std::string& folder, const integration::BmdProcess& bmd) {
  const std::string results = bmd.file("slurm");
  setenv("OUT", results.c_str(), 1);
  setenv("RUN", bmd.file("slurm-run").c_str(), 1);
  setenv("HOW", "api8", 1);
  setenv("REPS", "1", 1);
  setenv("QUIET_MAX", "10", 1);
  output_of({"bash", folder + "/bench.sh", "submit"}, bmd.file("slurm-output"));
  output_of({"bash", folder + "/down.sh"}, bmd.file("slurm-output"));
  std::ifstream in(results + "/slurm.tsv");
  std::string kind, variant, repetition;
  double per_second = 0;
  return in >> kind >> variant >> repetition >> per_second ? per_second : 0;
}

int usage() {
  std::fprintf(stderr, "usage: bench_orders [--json] [--seconds 1..60] [--slurm FOLDER]\n");
  return 2;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seconds" && i + 1 < argc) {
      options.seconds = std::atoi(argv[++i]);
    } else if (word == "--slurm" && i + 1 < argc) {
      options.slurm = argv[++i];
    } else if (word != "--json") {
      return false;
    }
  }
  return options.seconds >= 1 && options.seconds <= 60;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    return usage();
  }
  integration::BmdProcess bmd(program_beside(argv[0], "../bin/bmd"), "log: {level: error}");
  check(bmd.start(), "bench: bmd does not start");
  std::vector<std::unique_ptr<integration::FakeAgent>> agents;
  for (std::size_t i = 0; i < kNodes; ++i) {
    integration::FakeAgentOptions agent;
    agent.name = "node-" + std::to_string(i);
    agent.gpus = kGpusPerNode;
    agents.push_back(std::make_unique<integration::FakeAgent>(bmd, agent));
    check(agents.back()->connect(), "bench: a node cannot connect");
  }
  wait_offered(*bmd.operator_client());
  LoadOptions load;
  const Result<wire::WebAddress> address = wire::parse_url(bmd.endpoint("").url);
  check(address.ok(), "bench: bmd has no address");
  load.host = address->host;
  load.port = address->port;
  load.tokens = create_tenants(bmd);
  load.body = order_body();
  load.warm_up = std::chrono::milliseconds(500);
  load.duration = std::chrono::seconds(options.seconds);
  std::string json = "{";
  double best = 0;
  std::uint64_t failed = 0;
  for (const std::size_t connections : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
    load.connections = connections;
    load.key_prefix = "c" + std::to_string(connections);
    const LoadResult result = run_load(load);
    const std::string name = "\"http_" + std::to_string(connections);
    json += name + "_per_s\":" + std::to_string(static_cast<std::int64_t>(result.per_second)) +
            "," + name + "_p50_us\":" + std::to_string(result.p50_us) + "," + name +
            "_p99_us\":" + std::to_string(result.p99_us) + ",";
    best = result.per_second;
    failed += result.failed;
  }
  const std::string core =
      output_of({program_beside(argv[0], "bench_core"), "1"}, bmd.file("core"));
  json +=
      "\"core_per_s\":" + std::to_string(static_cast<std::int64_t>(number_in(core, "core_per_s"))) +
      ",\"failed\":" + std::to_string(failed);
  if (!options.slurm.empty()) {
    const double slurm = slurm_per_second(options.slurm, bmd);
    json += ",\"slurm_per_s\":" + std::to_string(slurm) +
            ",\"ratio\":" + (slurm > 0 ? std::to_string(best / slurm) : "null");
  }
  utsname machine{};
  uname(&machine);
  json += ",\"conditions\":{\"cpus\":" + std::to_string(std::thread::hardware_concurrency()) +
          ",\"kernel\":\"" + machine.release + "\",\"client\":\"same machine, one thread\"" +
          ",\"store\":\"sqlite, WAL, synchronous=FULL\",\"fdatasync_4k_p50_us\":" +
          std::to_string(fdatasync_p50_us(bmd.file("probe"))) +
          ",\"nodes\":" + std::to_string(kNodes) +
          ",\"gpus\":" + std::to_string(kNodes * kGpusPerNode) +
          ",\"tls\":false,\"seconds_per_figure\":" + std::to_string(options.seconds) +
          ",\"orders\":\"2 x A100; leased until the nodes are full, then waiting\"}}";
  std::printf("%s\n", json.c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace bmgpu::bench

int main(int argc, char** argv) { return bmgpu::bench::run(argc, argv); }
