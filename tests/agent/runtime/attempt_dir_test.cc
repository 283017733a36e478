#include "agent/runtime/attempt_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "agent/runtime/files.h"
#include "agent/runtime/temp_dir.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

TEST(AttemptDirTest, NamesRoundTrip) {
  const AttemptName name{"lease-17", 3, 42};
  EXPECT_EQ(name.text(), "lease-17.3.42");
  EXPECT_EQ(AttemptName::parse(name.text()), name);
  EXPECT_EQ(container_name("00ff", name), "bm-00ff-lease-17.3.42");
}

TEST(AttemptDirTest, RefusesWhatIsNoName) {
  for (const char* text : {"", ".", "..", "lease-17", "lease-17.1", "lease-17.01.1", "lease-.0.1",
                           "lease-1.0.-1", "lease-1.0.1.x", "../lease-1.0.1", "lease-1/.0.1",
                           "order-1.0.1", "lease-1.0.99999999999999999999"}) {
    EXPECT_FALSE(AttemptName::parse(text).has_value()) << text;
  }
}

TEST(AttemptDirTest, FilesRoundTripAndListsSort) {
  const TempDir temp;
  EXPECT_TRUE(list_attempts(temp.path()).empty());
  const AttemptDir dir(temp.path(), AttemptName{"lease-2", 0, 1});
  ASSERT_TRUE(dir.create().ok());
  ASSERT_TRUE(AttemptDir(temp.path(), AttemptName{"lease-1", 0, 1}).create().ok());
  EXPECT_EQ(dir.read_status().error().code, ErrorCode::NotFound);
  v1::AttemptStatus status;
  status.set_phase(v1::ATTEMPT_PHASE_ENDED);
  status.set_exit_code(3);
  ASSERT_TRUE(dir.write_status(status).ok());
  EXPECT_EQ(dir.read_status()->exit_code(), 3);
  v1::ShimWant want;
  want.set_stop(true);
  ASSERT_TRUE(dir.write_want(want).ok());
  EXPECT_TRUE(dir.read_want()->stop());
  ASSERT_TRUE(write_file(dir.want_path(), "\xff\xff").ok());
  EXPECT_EQ(dir.read_want().error().code, ErrorCode::DataLoss);
  const std::vector<AttemptName> names = list_attempts(temp.path());
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].lease, "lease-1");
  ASSERT_TRUE(dir.remove().ok());
  EXPECT_EQ(list_attempts(temp.path()).size(), 1u);
}

TEST(AttemptDirTest, SeesALockWithoutTakingIt) {
  const TempDir temp;
  const AttemptDir dir(temp.path());
  EXPECT_FALSE(dir.shim_alive());
  Fd fd(::open(dir.lock_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(dir.shim_alive());
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(fd.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE(dir.shim_alive());
  fd.reset();
  EXPECT_FALSE(dir.shim_alive());
}

}  // namespace
}  // namespace bmgpu::agent
