// bmsim: the market's own code on traces and on virtual time. Each command has its own file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "sim/chaos/command.h"
#include "sim/openb.h"
#include "sim/replay/command.h"

namespace bmgpu::sim {
namespace {

constexpr int kExitUsage = 2;
constexpr std::int64_t kJobsMax = 256;

// A line on standard error each second.
class Progress {
 public:
  void operator()(std::size_t done, std::size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ >= std::chrono::seconds(1) && done < all) {
      last_ = now;
      std::cerr << "bmsim: " << done << " of " << all << " runs\n";
    }
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

int openb(const OpenbOptions& options, bool json) {
  Progress progress;
  const auto results = run_openb_command(options, std::ref(progress));
  if (!results) {
    std::cerr << "bmsim: " << results.error().message << "\n";
    return kExitUsage;
  }
  std::cout << (json ? openb_json(*results, options) : openb_table(*results));
  return 0;
}

void add_openb(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<OpenbOptions>();
  const auto json = std::make_shared<bool>(false);
  options->jobs = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  CLI::App* command = app.add_subcommand(
      "openb", "Compare placement policies on Alibaba's openb trace by FGD's published protocol");
  command->add_option("--nodes", options->node_file, "CSV file of nodes")->required();
  command->add_option("--pods", options->pod_files, "CSV files of pods, one list each")->required();
  command
      ->add_option("--policy", options->policy,
                   "random, dotprod, gpuclustering, gpupacking, bestfit, fgd, bm or all")
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "Repetitions, A-B")->required();
  command->add_option("--jobs", options->jobs, "Threads; the results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, kJobsMax));
  command->add_flag("--json", *json, "One JSON document per policy and list instead of a table");
  command->callback([options, json, &exit_code] { exit_code = openb(*options, *json); });
}

int run(int argc, char** argv) {
  CLI::App app{"The market's own code on traces of real clusters, and on virtual time."};
  app.set_version_flag("--version", BMGPU_VERSION);
  app.require_subcommand(1);
  int exit_code = 0;
  add_openb(app, exit_code);
  add_chaos(app, exit_code);
  add_replay(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  return exit_code;
}

}  // namespace
}  // namespace bmgpu::sim

int main(int argc, char** argv) { return bmgpu::sim::run(argc, argv); }
