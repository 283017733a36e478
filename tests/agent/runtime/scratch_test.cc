// A scratch space that somebody else's mount namespace holds. As root.
#include "agent/runtime/scratch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "agent/runtime/attempt_dir.h"
#include "agent/runtime/files.h"
#include "agent/runtime/temp_dir.h"

namespace bmgpu::agent {
namespace {

// A process with a copy of every mount, as a container that is being made has one.
class Holder {
 public:
  // Leaves when `leaves` is true, or with this object.
  explicit Holder(const std::function<bool()>& leaves) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const bool apart = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      [[maybe_unused]] const ssize_t told = ::write(ready[1], apart ? "y" : "n", 1);
      while (!leaves()) {
        ::poll(nullptr, 0, 5);
      }
      ::_exit(0);
    }
    char answer = 'n';
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() { end(); }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class ScratchTest : public testing::Test {
 protected:
  ScratchTest() {
    EXPECT_TRUE(dir_.create().ok());
    EXPECT_TRUE(format_scratch(image_, kScratchMibMin).ok());
    EXPECT_TRUE(mount_scratch(image_, target_).ok());
  }
  TempDir temp_;
  const AttemptDir dir_{temp_.path(), AttemptName{"lease-1", 0, 1}};
  const std::string image_ = dir_.file("scratch.img");
  const std::string target_ = dir_.file("scratch");
};

TEST_F(ScratchTest, IsRemovedOnlyOnceItsDeviceIsFree) {
  EXPECT_FALSE(scratch_released(image_).ok());  // the control
  const Holder holder([this] { return ::access(target_.c_str(), F_OK) != 0; });
  const Result<void> removed = remove_scratch(image_, target_);
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_TRUE(scratch_released(image_).ok());
}

TEST_F(ScratchTest, AnAttemptWhoseScratchIsHeldIsKeptAndTheHolderIsNamed) {
  Holder holder([] { return false; });
  const Result<void> held = dir_.remove();
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code, ErrorCode::Unavailable);
  EXPECT_NE(held.error().message.find("process " + std::to_string(holder.pid())), std::string::npos)
      << held.error().message;
  EXPECT_TRUE(std::filesystem::exists(dir_.path()));
  holder.end();
  const Result<void> removed = remove_scratch(image_, target_);
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_TRUE(dir_.remove().ok());
  EXPECT_FALSE(std::filesystem::exists(dir_.path()));
}

}  // namespace
}  // namespace bmgpu::agent
