// Real containers: what our CDI files grant can be opened inside, what they do not grant cannot.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/gpu/cdi.h"
#include "agent/gpu/simulated_gpus.h"
#include "agent/host/durable_file.h"

extern char** environ;

namespace bmgpu::agent {
namespace {

struct Ran {
  int code = -1;
  std::string output;  // standard output and error
};

Ran run(std::vector<std::string> command) {
  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  std::vector<char*> argv;
  for (std::string& word : command) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_t pid = -1;
  Ran ran;
  const int spawned = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  EXPECT_EQ(spawned, 0) << command[0];
  std::array<char, 4096> block{};
  for (ssize_t n = 1; n > 0;) {
    n = read(pipe_ends[0], block.data(), block.size());
    ran.output.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
  close(pipe_ends[0]);
  int status = 0;
  if (spawned == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
    ran.code = WEXITSTATUS(status);
  }
  return ran;
}

// An engine of its own: its storage, its image and its CDI kind, all removed at the end.
class PodmanCdiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string root = folder() + "/image";
    for (const char* name : {"/bin", "/tmp", "/dev", "/proc", "/sys", "/etc"}) {
      ASSERT_TRUE(ensure_folder(root + name).ok());
    }
    std::filesystem::copy_file("/bin/busybox", root + "/bin/busybox");
    ASSERT_EQ(run({"tar", "-C", root, "-cf", folder() + "/image.tar", "."}).code, 0);
    const Ran imported = podman({"import", folder() + "/image.tar", "bm-gpu-test:1"});
    ASSERT_EQ(imported.code, 0) << imported.output;

    gpus_.edit([](SimProfile& p) { p.minor_base = 240; });
    const SimProfile profile = gpus_.profile();
    spec_.kind = "bm-gpu.test/p" + std::to_string(getpid());
    spec_.device_dir = folder() + "/dev";
    for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
      spec_.devices.push_back({sim_uuid(profile, i), sim_minor(profile, i)});
    }
    ASSERT_TRUE(ensure_simulated_devices(spec_.device_dir, {240, 241}).ok());
    const Result<std::string> written = write_cdi(kCdiDir, spec_);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void TearDown() override {
    EXPECT_TRUE(remove_cdi(kCdiDir, spec_.kind).ok());
    podman({"system", "prune", "--all", "--force"});
  }

  const std::string& folder() const { return gpus_.folder(); }

  Ran podman(const std::vector<std::string>& words) const {
    std::vector<std::string> command = {
        "podman",    "--root", folder() + "/root",         "--runroot", folder() + "/runroot",
        "--runtime", "runc",   "--cgroup-manager=cgroupfs"};
    command.insert(command.end(), words.begin(), words.end());
    return run(std::move(command));
  }

  // Opens device files in a container that was given `devices`: "/dev/nvidiaN" as they are, and a
  // device 195:241 that the job made itself.
  std::string open_inside(const std::vector<std::string>& devices) const {
    std::vector<std::string> words = {"run",
                                      "--rm",
                                      "--network=none",
                                      "--ulimit",
                                      "nofile=1024:1024",
                                      "--ulimit",
                                      "nproc=1000:1000",
                                      "--cap-add",
                                      "MKNOD"};
    for (const std::string& device : devices) {
      words.push_back("--device");
      words.push_back(cdi_device_name(spec_.kind, device));
    }
    for (const char* word :
         {"bm-gpu-test:1", "/bin/busybox", "sh", "-c",
          "busybox mknod /tmp/own c 195 241\n"
          "for f in /dev/nvidia240 /dev/nvidia241 /tmp/own; do busybox dd if=$f count=1; done"}) {
      words.push_back(word);
    }
    return podman(words).output;
  }
  static bool says(const std::string& output, const std::string& file, const std::string& why) {
    return output.find("can't open '" + file + "': " + why) != std::string::npos;
  }

  static constexpr const char* kCdiDir = "/var/run/cdi";
  static constexpr const char* kGranted = "No such device or address";  // ENXIO
  static constexpr const char* kMissing = "No such file or directory";
  static constexpr const char* kDenied = "Operation not permitted";
  SimulatedGpus gpus_{"rtx4090-2.yaml"};
  CdiSpec spec_;
};

TEST_F(PodmanCdiTest, AContainerGetsItsGpuAndNoOther) {
  const std::string one = open_inside({spec_.devices[0].uuid});
  EXPECT_TRUE(says(one, "/dev/nvidia240", kGranted)) << one;
  EXPECT_TRUE(says(one, "/dev/nvidia241", kMissing)) << one;
  EXPECT_TRUE(says(one, "/tmp/own", kDenied)) << one;
  // The control: with both granted, the very same files open.
  const std::string both = open_inside({spec_.devices[0].uuid, spec_.devices[1].uuid});
  EXPECT_TRUE(says(both, "/dev/nvidia240", kGranted)) << both;
  EXPECT_TRUE(says(both, "/dev/nvidia241", kGranted)) << both;
  EXPECT_TRUE(says(both, "/tmp/own", kGranted)) << both;
}

TEST_F(PodmanCdiTest, AnUnknownGpuStartsNothing) {
  const std::string output = open_inside({"GPU-of-somebody-else"});
  EXPECT_NE(output.find("unresolvable CDI devices"), std::string::npos) << output;
}

}  // namespace
}  // namespace bmgpu::agent
