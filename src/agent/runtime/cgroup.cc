#include "agent/runtime/cgroup.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <sstream>
#include <utility>

#include "agent/runtime/files.h"

namespace bmgpu::agent {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> subfolders(const std::string& dir) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(dir.c_str()), ::closedir);
  while (handle != nullptr) {
    const dirent* entry = ::readdir(handle.get());
    if (entry == nullptr) {
      break;
    }
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
      out.push_back(dir + "/" + entry->d_name);
    }
  }
  return out;
}

void collect(const std::string& dir, std::vector<int>& pids) {
  const Result<std::string> text = read_file(dir + "/cgroup.procs");
  if (!text.ok()) {
    return;
  }
  std::istringstream lines(*text);
  for (int pid = 0; lines >> pid;) {
    if (pid > 0) {
      pids.push_back(pid);
    }
  }
  for (const std::string& below : subfolders(dir)) {
    collect(below, pids);
  }
}

void remove_folders(const std::string& dir) {
  for (const std::string& below : subfolders(dir)) {
    remove_folders(below);
  }
  ::rmdir(dir.c_str());
}

// The number after "name " at the start of a line.
std::uint64_t value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string word;
  for (std::uint64_t value = 0; lines >> word >> value;) {
    if (word == name) {
      return value;
    }
  }
  return 0;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

CgroupTrees cgroup_trees() {
  CgroupTrees trees;
  const Result<std::string> mounts = read_file("/proc/self/mounts");
  if (!mounts.ok()) {
    return trees;
  }
  std::istringstream lines(*mounts);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string source, target, type, options;
    words >> source >> target >> type >> options;
    options = "," + options + ",";
    const auto has = [&](const char* option) {
      return options.find(std::string(",") + option + ",") != std::string::npos;
    };
    if (type == "cgroup2") {
      trees.unified = target;
    } else if (type == "cgroup") {
      (has("freezer")        ? trees.freezer
       : has("memory")       ? trees.memory
       : has("devices")      ? trees.devices
       : has("name=systemd") ? trees.named
                             : source) = target;
    }
  }
  return trees;
}

std::string cgroup_version(const CgroupTrees& trees) {
  if (trees.v1()) {
    return trees.unified.empty() ? "v1" : "hybrid";
  }
  return trees.unified.empty() ? "" : "v2";
}

std::vector<std::string> service_cgroup_trees() {
  const CgroupTrees trees = cgroup_trees();
  std::vector<std::string> out;
  for (const std::string& tree : {trees.unified, trees.named}) {
    if (!tree.empty()) {
      out.push_back(tree);
    }
  }
  return out;
}

std::string cgroup_of(int pid, const CgroupTrees& trees) {
  // "6:freezer:/path" a line; v2 is "0::/path".
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/cgroup");
  std::istringstream lines(text.ok() ? *text : std::string());
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (trees.v1() ? controllers.find(",freezer,") != std::string::npos : controllers == ",,") {
      return line.size() > second + 2 ? line.substr(second + 1) : std::string();
    }
  }
  return {};
}

JobCgroup::JobCgroup(CgroupTrees trees, std::string path)
    : trees_(std::move(trees)), path_(std::move(path)) {
  check(path_.size() > 1 && path_.front() == '/', "a job's cgroup is never the root");
}

std::string JobCgroup::job_dir() const {
  return (trees_.v1() ? trees_.freezer : trees_.unified) + path_;
}

std::vector<int> JobCgroup::pids() const {
  std::vector<int> pids;
  collect(job_dir(), pids);
  return pids;
}

Result<void> JobCgroup::freeze(std::chrono::milliseconds deadline) const {
  const Clock::time_point end = Clock::now() + deadline;
  const std::string dir = job_dir();
  while (true) {
    const Result<void> written = trees_.v1() ? write_kernel_file(dir + "/freezer.state", "FROZEN")
                                             : write_kernel_file(dir + "/cgroup.freeze", "1");
    if (!written.ok()) {
      return written;
    }
    const Result<std::string> state =
        read_file(dir + (trees_.v1() ? "/freezer.state" : "/cgroup.events"));
    if (!state.ok()) {
      return state.error();
    }
    if (trees_.v1() ? state->starts_with("FROZEN") : value_of(*state, "frozen") == 1) {
      return {};
    }
    if (Clock::now() >= end) {
      return Error{ErrorCode::DeadlineExceeded, "the job's processes cannot be frozen: " + dir};
    }
    ::poll(nullptr, 0, 1);
  }
}

Result<void> JobCgroup::thaw() const {
  const std::string dir = job_dir();
  return trees_.v1() ? write_kernel_file(dir + "/freezer.state", "THAWED")
                     : write_kernel_file(dir + "/cgroup.freeze", "0");
}

Result<void> JobCgroup::kill(std::chrono::milliseconds deadline) const {
  const Clock::time_point end = Clock::now() + deadline;
  const std::string dir = job_dir();
  while (exists(dir)) {
    const std::vector<int> all = pids();
    if (all.empty()) {
      return {};
    }
    if (!trees_.v1() && exists(dir + "/cgroup.kill")) {
      (void)write_kernel_file(dir + "/cgroup.kill", "1").ok();
    } else {
      // One that cannot be frozen (it hangs in a driver) must not keep the others alive.
      (void)freeze(std::chrono::milliseconds(500)).ok();
      for (const int pid : pids()) {
        ::kill(pid, SIGKILL);
      }
      (void)thaw().ok();
    }
    if (Clock::now() >= end) {
      return Error{ErrorCode::DeadlineExceeded,
                   std::to_string(all.size()) + " processes of the job do not die: " + dir};
    }
    ::poll(nullptr, 0, 2);
  }
  return {};
}

std::uint64_t JobCgroup::oom_kills() const {
  const std::string file = trees_.v1() ? trees_.memory + path_ + "/memory.oom_control"
                                       : trees_.unified + path_ + "/memory.events";
  const Result<std::string> text = read_file(file);
  return text.ok() ? value_of(*text, "oom_kill") : 0;
}

void remove_cgroup(const std::string& path) {
  check(path.size() > 1 && path.front() == '/', "the root cgroup is nobody's to remove");
  const Result<std::string> mounts = read_file("/proc/self/mounts");
  std::istringstream lines(mounts.ok() ? *mounts : std::string());
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string source, target, type;
    words >> source >> target >> type;
    if (type == "cgroup" || type == "cgroup2") {
      remove_folders(target + path);
    }
  }
}

}  // namespace bmgpu::agent
