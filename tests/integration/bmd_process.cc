#include "integration/bmd_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "wire/json.h"

namespace bmgpu::integration {
namespace {

using std::chrono::steady_clock;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int wait_exit(pid_t pid) {
  int status = 0;
  check(waitpid(pid, &status, 0) == pid, "waitpid failed");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base == nullptr ? "/tmp" : base) + "/bmgpu-test-XXXXXX";
  check(mkdtemp(path_.data()) != nullptr, "mkdtemp failed");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

BmdProcess::BmdProcess(std::string program, std::string extra) : program_(std::move(program)) {
  std::ofstream out(file("bmd.yaml"));
  out << "state_dir: " << state_dir() << "\n"
      << "listen: 127.0.0.1:0\nheartbeat_listen: 127.0.0.1:0\n";
  if (extra.find("tls:") == std::string::npos) {
    out << "tls: {mode: \"off\"}\n";
  }
  out << extra << "\n";
}

BmdProcess::~BmdProcess() {
  if (runs()) {
    kill();
  }
}

pid_t BmdProcess::spawn(const std::string& argument, const std::string& out) const {
  std::vector<std::string> words = {program_, "--config", file("bmd.yaml")};
  if (!argument.empty()) {
    words.push_back(argument);
  }
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, file("messages").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, program_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? pid : -1;
}

bool BmdProcess::start() {
  check(!runs(), "bmd runs already");
  const std::string endpoint_file = state_dir() + "/endpoint.json";
  std::filesystem::create_directories(state_dir());
  std::filesystem::remove(endpoint_file);
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  check(inotify_add_watch(watch, state_dir().c_str(), IN_MOVED_TO) >= 0, "inotify failed");
  pid_ = spawn("", file("output"));
  check(pid_ > 0, "bmd cannot be run");
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd events[2] = {{watch, POLLIN, 0}, {process, POLLIN, 0}};
  const auto deadline = steady_clock::now() + std::chrono::seconds(30);
  bool listens = false;
  while (!listens && steady_clock::now() < deadline) {
    poll(events, 2, 1000);
    char buffer[4096];
    while (read(watch, buffer, sizeof buffer) > 0) {
    }
    listens = std::filesystem::exists(endpoint_file);
    if (!listens && (events[1].revents & POLLIN) != 0) {
      break;
    }
  }
  close(watch);
  close(process);
  if (!listens) {
    wait_exit(std::exchange(pid_, -1));
    return false;
  }
  const Result<wire::JsonObject> endpoints = wire::parse_json_object(read_file(endpoint_file));
  check(endpoints.ok(), "endpoint.json is not JSON");
  url_ = endpoints->at("url");
  heartbeat_ = endpoints->at("heartbeat");
  ca_sha256_ = endpoints->at("ca_sha256");
  return true;
}

int BmdProcess::stop() {
  ::kill(pid_, SIGTERM);
  return wait_exit(std::exchange(pid_, -1));
}

void BmdProcess::kill() {
  ::kill(pid_, SIGKILL);
  wait_exit(std::exchange(pid_, -1));
}

std::string BmdProcess::run(const std::string& argument, int& code) const {
  const std::string out = file("run-output");
  const pid_t pid = spawn(argument, out);
  check(pid > 0, "bmd cannot be run");
  code = wait_exit(pid);
  return read_file(out);
}

std::string BmdProcess::messages() const { return read_file(file("messages")); }

wire::Endpoint BmdProcess::endpoint(const std::string& bearer) const {
  return {url_, ca_sha256_, bearer};
}

wire::Endpoint BmdProcess::heartbeat_endpoint(const std::string& bearer) const {
  return {(ca_sha256_.empty() ? "http://" : "https://") + heartbeat_, ca_sha256_, bearer};
}

std::string BmdProcess::operator_token() const {
  std::string token = read_file(state_dir() + "/operator.token");
  while (!token.empty() && token.back() == '\n') {
    token.pop_back();
  }
  return token;
}

std::unique_ptr<wire::Client> BmdProcess::client(const std::string& bearer) const {
  Result<std::unique_ptr<wire::Client>> client = wire::Client::create(endpoint(bearer));
  check(client.ok(), "no client for bmd");
  return std::move(*client);
}

}  // namespace bmgpu::integration
