// bm-agent: one program for everything that runs on a GPU node.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "agent/agent.h"
#include "agent/config.h"
#include "agent/doctor.h"
#include "agent/gpu/probe.h"
#include "agent/guard.h"
#include "agent/join.h"
#include "agent/runtime/shim.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr std::chrono::milliseconds kGuardStopLimit{5000};
constexpr std::chrono::milliseconds kLeaveLimit{60'000};
constexpr std::size_t kTokenBytesMax = 8192;

constexpr const char* kExamples = R"(Examples:
  # on the market's machine: a token for a new node (it works once, for 10 minutes)
  bmcli token create --role node-join --name join-gpu7 --node gpu7
  # on the GPU server, as root:
  bm-agent join --token-file token.txt
  bm-agent doctor
  bm-agent run
  # end this node and everything of it on this machine, its jobs too:
  bm-agent leave

Every key of the configuration file: docs/reference/bm-agent-config.md)";

struct Options {
  std::optional<std::string> config;
  std::optional<std::string> state_dir;
  std::string token;
  std::string token_file;
  std::string attempt_dir;
  bool stop_guard = false;
  bool json = false;
};

int fail(const Error& error) {
  std::cerr << "bm-agent: " << error.message << "\n";
  return kFailed;
}

Result<std::string> read_token(const Options& options) {
  if (!options.token.empty()) {
    return options.token;
  }
  std::string text;
  if (options.token_file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
    return text;
  }
  return read_file(options.token_file, kTokenBytesMax);
}

int run_join(const AgentConfig& config, const Options& options) {
  if (options.token.empty() == options.token_file.empty()) {
    std::cerr << "bm-agent: give one of --token and --token-file (- reads standard input)\n";
    return kUsage;
  }
  const Result<std::string> token = read_token(options);
  if (!token) {
    return fail(token.error());
  }
  const Result<v1::NodeFile> node = join(config, *token);
  if (!node) {
    return fail(node.error());
  }
  std::cout << "joined " << node->url() << " as " << node->name() << " (" << node->node()
            << "); now run: bm-agent run\n";
  return 0;
}

int run_agent(const AgentConfig& config, const Options& options) {
  wire::Log log(config.log);
  const Result<std::unique_ptr<Agent>> agent = Agent::create(config, log);
  if (!agent) {
    return fail(agent.error());
  }
  (*agent)->run();
  if (options.stop_guard) {
    if (const Result<void> stopped = stop_guard(config.state_dir, kGuardStopLimit); !stopped) {
      return fail(stopped.error());
    }
  }
  return 0;
}

int run_leave(const AgentConfig& config) {
  wire::Log log(config.log);
  const Result<void> left = leave(config, log, kLeaveLimit);
  if (!left) {
    return fail(left.error());
  }
  std::cout << "left the market; nothing of the node runs on this machine any more\n";
  return 0;
}

int run_doctor_command(const AgentConfig& config, const Options& options) {
  const std::vector<DoctorCheck> checks = run_doctor(config);
  std::cout << (options.json ? doctor_json(checks) : doctor_text(checks));
  return all_ok(checks) ? 0 : kFailed;
}

int run_guard(const AgentConfig& config) {
  wire::LogOptions options = config.log;
  options.process = "guard";
  wire::Log log(options);
  return guard_main(config.state_dir, log);
}

void add_places(CLI::App* command, Options& options) {
  command->add_option("--config", options.config,
                      std::string("configuration file (default: ") + kDefaultConfigFile + ")");
  command->add_option("--state-dir", options.state_dir,
                      "where the node keeps its files, instead of the configuration's state_dir");
}

std::string usage_mistake(const CLI::App* app, const CLI::Error& error) {
  const std::string what =
      app->get_subcommands().empty()
          ? "a command is missing or unknown; there are join, doctor, run, leave"
          : error.what();
  return "bm-agent: " + what + "; see bm-agent --help\n";
}

int dispatch(int argc, char** argv) {
  CLI::App app{"bm-agent: makes this machine a node of a GPU market"};
  app.set_version_flag("--version", "bm-agent " BMGPU_VERSION);
  app.require_subcommand(1);
  app.footer(kExamples);
  app.failure_message(usage_mistake);
  Options options;
  CLI::App* join_command = app.add_subcommand("join", "join a market with a one-time token");
  join_command->add_option("--token", options.token,
                           "the token (visible to other users: prefer "
                           "--token-file)");
  join_command->add_option("--token-file", options.token_file,
                           "file that holds the token; - reads standard input");
  CLI::App* run_command = app.add_subcommand("run", "run the node's service");
  run_command->add_flag("--stop-guard", options.stop_guard,
                        "end the guard too when the service is stopped: the node is lost at once");
  CLI::App* leave_command =
      app.add_subcommand("leave", "end this node: its jobs, its service and its files");
  CLI::App* doctor_command = app.add_subcommand("doctor", "check everything that a node needs");
  doctor_command->add_flag("--json", options.json, "one JSON document");
  CLI::App* guard_command =
      app.add_subcommand("guard", "hold the node's permission (started by run)");
  CLI::App* shim_command = app.add_subcommand("shim", "supervise one attempt (started by run)");
  shim_command->add_option("dir", options.attempt_dir, "the attempt's folder")->required();
  for (CLI::App* command :
       {join_command, run_command, leave_command, doctor_command, guard_command}) {
    add_places(command, options);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (shim_command->parsed()) {
    return shim_main(options.attempt_dir);
  }
  const Result<AgentConfig> config = load_config(options.config, options.state_dir);
  if (!config) {
    std::cerr << "bm-agent: " << config.error().message << "\n";
    return kUsage;
  }
  if (join_command->parsed()) {
    return run_join(*config, options);
  }
  if (run_command->parsed()) {
    return run_agent(*config, options);
  }
  if (leave_command->parsed()) {
    return run_leave(*config);
  }
  return guard_command->parsed() ? run_guard(*config) : run_doctor_command(*config, options);
}

}  // namespace
}  // namespace bmgpu::agent

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  // The worker's command line is the probe's own affair.
  if (argc > 1 && std::string_view(argv[1]) == "nvml-worker") {
    return bmgpu::agent::nvml_worker_main(argc - 1, argv + 1);
  }
  return bmgpu::agent::dispatch(argc, argv);
}
