#include "agent/runtime/node_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "agent/host/facts.h"
#include "agent/runtime/cgroup.h"
#include "agent/runtime/clock.h"
#include "agent/runtime/log_tail.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

constexpr int kMinors = 4;

std::string must(const Result<std::string>& outcome) {
  EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  return outcome.ok() ? *outcome : "";
}
void must(const Result<void>& outcome) { EXPECT_TRUE(outcome.ok()) << outcome.error().message; }

std::string kind_of(const TempDir& dir) {
  return "bmgpu.test/t" + dir.path().substr(dir.path().rfind('-') + 1);
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    ::poll(nullptr, 0, 3);
  }
  return true;
}

const std::string& busybox_store() {
  struct Store {
    TempDir dir;
    std::string path = dir.file("store");
    Store() {
      const std::string root = dir.file("root");
      for (const char* folder : {"/bin", "/etc", "/dev", "/proc", "/sys", "/tmp", "/var"}) {
        must(make_dirs(root + folder, 0755));
      }
      const std::string busybox = must(find_program("busybox"));
      must(run_ok({"cp", busybox, root + "/bin/busybox"}));
      for (const char* applet :
           {"sh", "cat",   "echo",   "sleep", "ls",    "dd",   "head",  "tail", "ip",
            "id", "nc",    "seq",    "grep",  "wc",    "stat", "touch", "awk",  "kill",
            "ps", "mknod", "ulimit", "df",    "mount", "true", "tar",   "stty", "ln"}) {
        [[maybe_unused]] const int made = ::symlink("busybox", (root + "/bin/" + applet).c_str());
      }
      must(run_ok({"tar", "-C", root, "-cf", dir.file("image.tar"), "."}));
      import(kImage, {"ENV=CUDA_VISIBLE_DEVICES=7", "ENV=IMAGE_SAYS=hello"});
      import(kUserImage, {"USER=1000"});
    }
    void import(const std::string& name, const std::vector<std::string>& changes) {
      std::vector<std::string> command = {"podman",
                                          "--root",
                                          path,
                                          "--runroot",
                                          dir.file("run"),
                                          "--tmpdir",
                                          dir.file("tmp"),
                                          "--cgroup-manager=cgroupfs",
                                          "--events-backend=none",
                                          "--storage-driver=overlay",
                                          "import"};
      for (const std::string& change : changes) {
        command.insert(command.end(), {"--change", change});
      }
      command.insert(command.end(), {dir.file("image.tar"), name});
      RunOptions slow;
      slow.deadline = std::chrono::seconds(60);
      must(run_ok(command, slow));
    }
    ~Store() { (void)run({"umount", "-l", path + "/overlay"}).ok(); }
  };
  static const Store store;
  return store.path;
}

RuntimeOptions TestNode::options() const {
  RuntimeOptions options;
  options.state_dir = state_dir();
  options.market = "00000000000000aa";
  options.node = name_;
  options.image_stores = {busybox_store()};
  options.init_path = BM_INIT_PATH;
  return options;
}

TestNode::TestNode(const std::string& name, int disk_mib) : name_(name), disk_mib_(disk_mib) {
  if (disk_mib_ > 0) {
    must(make_dirs(state_dir()));
    const std::string size = "size=" + std::to_string(disk_mib_) + "m";
    EXPECT_EQ(::mount("none", state_dir().c_str(), "tmpfs", 0, size.c_str()), 0);
  }
  must(make_dirs(dir_.file("dev")));
  std::string devices;
  for (int i = 0; i < kMinors; ++i) {
    const std::string path = dir_.file("dev/nvidia" + std::to_string(i));
    EXPECT_EQ(::mknod(path.c_str(), S_IFCHR | 0666, makedev(195, static_cast<unsigned>(i))), 0);
    ::chmod(path.c_str(), 0666);
    devices += std::string(i == 0 ? "" : ",") + R"({"name":"GPU-)" + std::to_string(i) +
               R"(","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia)" + std::to_string(i) +
               R"(","hostPath":")" + path + R"("}]}})";
  }
  must(make_dirs("/var/run/cdi", 0755));
  cdi_path_ = "/var/run/cdi/bmgpu-test-" + kind_of(dir_).substr(11) + ".json";
  must(write_file(
      cdi_path_,
      R"({"cdiVersion":"0.5.0","kind":")" + kind_of(dir_) + R"(","devices":[)" + devices + "]}",
      0644));
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(options());
  EXPECT_TRUE(runtime.ok()) << runtime.error().message;
  runtime_ = std::move(*runtime);
}

TestNode::~TestNode() {
  for (const AttemptName& name : list_attempts(state_dir())) {
    const AttemptDir dir(state_dir(), name);
    const Result<v1::AttemptStatus> status = dir.read_status();
    if (!status.ok() || status->phase() != v1::ATTEMPT_PHASE_ENDED) {
      v1::ShimWant want;
      want.set_stop(true);
      must(dir.write_want(want));
      if (!dir.shim_alive()) {
        spawn(dir);
      }
    }
    ended(dir);
  }
  EXPECT_EQ(leftovers(), "");
  must(runtime_->remove_all());
  ::unlink(cdi_path_.c_str());
  if (disk_mib_ > 0) {
    EXPECT_EQ(::umount2(state_dir().c_str(), 0), 0);
  }
}

v1::AttemptSpec TestNode::spec(const std::string& script, std::chrono::seconds lease) {
  v1::AttemptSpec spec;
  spec.set_lease("lease-" + std::to_string(++leases_));
  spec.set_attempt(1);
  spec.set_incarnation(7);
  spec.set_cpu_millis(1000);
  spec.set_memory_mib(64);
  spec.set_scratch_mib(32);
  spec.set_pids(64);
  spec.set_lease_end_unix_ms(unix_ms() + std::chrono::milliseconds(lease).count());
  spec.mutable_job()->set_image(kImage);
  spec.mutable_job()->set_network(v1::NETWORK_MODE_NONE);
  for (const char* word : {"sh", "-c"}) {
    spec.mutable_job()->add_command(word);
  }
  spec.mutable_job()->add_command(script);
  return spec;
}

v1::ShimOrder TestNode::order(const v1::AttemptSpec& spec, const std::vector<int>& minors) const {
  std::vector<DeviceGrant> devices;
  for (const int minor : minors) {
    const std::string uuid = "GPU-" + std::to_string(minor);
    devices.push_back({uuid, kind_of(dir_) + "=" + uuid, static_cast<std::uint32_t>(minor)});
  }
  return runtime_->order(spec, devices);
}

AttemptDir TestNode::start(const v1::AttemptSpec& spec, const std::vector<int>& minors) {
  return start_order(order(spec, minors));
}

AttemptDir TestNode::start_order(const v1::ShimOrder& order) {
  const AttemptDir dir(state_dir(),
                       {order.spec().lease(), order.spec().rank(), order.spec().attempt()});
  must(dir.create());
  must(dir.write_order(order));
  spawn(dir);
  return dir;
}

void TestNode::spawn(const AttemptDir& dir) { must(spawn_shim(dir, {BM_TEST_SHIM_PATH})); }

bool TestNode::wait_for(const AttemptDir& dir, v1::AttemptPhase phase) {
  return eventually([&] {
    const Result<v1::AttemptStatus> status = dir.read_status();
    return status.ok() && status->phase() >= phase;
  });
}

v1::AttemptStatus TestNode::ended(const AttemptDir& dir) {
  EXPECT_TRUE(wait_for(dir, v1::ATTEMPT_PHASE_ENDED)) << *read_file(dir.file("shim.log"));
  EXPECT_TRUE(eventually([&] { return !dir.shim_alive(); }));
  Result<v1::AttemptStatus> status = dir.read_status();
  return status.ok() ? *status : v1::AttemptStatus();
}

std::string TestNode::log(const AttemptDir& dir) const {
  LogTail tail(dir.log_path());
  std::string text;
  while (true) {
    const Result<std::vector<LogEntry>> lines = tail.read(1000, 1 << 20);
    if (!lines.ok() || lines->empty()) {
      return text;
    }
    for (const LogEntry& line : *lines) {
      text += line.text + (line.partial ? "" : "\n");
    }
  }
}

int TestNode::shim_pid(const AttemptDir& dir) const {
  const Result<std::string> text = read_file(dir.lock_path());
  return text.ok() && !text->empty() ? std::stoi(*text) : 0;
}

void TestNode::kill_shim(const AttemptDir& dir) {
  EXPECT_TRUE(dir.shim_alive());
  ::kill(shim_pid(dir), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !dir.shim_alive(); }));
}

int TestNode::container_pid(const AttemptDir& dir) {
  const Podman podman(runtime_->socket());
  const Result<v1::ShimOrder> order = dir.read_order();
  const Result<ContainerState> state = podman.inspect(container_name(
      order->market(), {order->spec().lease(), order->spec().rank(), order->spec().attempt()}));
  return state.ok() ? state->pid : 0;
}

std::vector<int> TestNode::job_pids(const AttemptDir& dir) {
  const Podman podman(runtime_->socket());
  const Result<v1::ShimOrder> order = dir.read_order();
  const Result<ContainerState> state = podman.inspect(container_name(
      order->market(), {order->spec().lease(), order->spec().rank(), order->spec().attempt()}));
  if (!state.ok() || state->cgroup_path.size() < 2) {
    return {};
  }
  return JobCgroup(cgroup_trees(), state->cgroup_path).pids();
}

std::string TestNode::leftovers() {
  std::string found;
  eventually([&] { return (found = leftovers_now()).empty(); }, std::chrono::seconds(10));
  return found;
}

std::string TestNode::leftovers_now() {
  std::string found;
  const Result<std::vector<ContainerInfo>> containers = runtime_->containers();
  if (!containers.ok()) {
    return "cannot list containers: " + containers.error().message;
  }
  for (const ContainerInfo& container : *containers) {
    found += "container " + container.name + "\n";
  }
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(state_dir() + "/attempts") != std::string::npos) {
      found += "mount " + line + "\n";
    }
  }
  for (int i = 0; i < 64; ++i) {
    const Result<std::string> file =
        read_file("/sys/block/loop" + std::to_string(i) + "/loop/backing_file");
    if (file.ok() && file->find(state_dir()) != std::string::npos) {
      found += "loop device of " + *file;
    }
  }
  for (const AttemptName& name : list_attempts(state_dir())) {
    const AttemptDir dir(state_dir(), name);
    for (const char* file : {"scratch.img", "scratch", "netns", "gate"}) {
      if (::access(dir.file(file).c_str(), F_OK) == 0) {
        found += "file " + dir.file(file) + "\n";
      }
    }
  }
  return found;
}

}  // namespace bmgpu::agent
