#include "agent/permission_page.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "agent/runtime/files.h"
#include "agent/runtime/temp_dir.h"

namespace bmgpu::agent {
namespace {

const std::string kBoot = "11111111-2222-3333-4444-555555555555";
const std::string kOtherBoot = "11111111-2222-3333-4444-555555555556";

PublishedPermission numbered(std::uint64_t n) {
  PublishedPermission p;
  p.permission = {static_cast<std::int64_t>(n), static_cast<std::int64_t>(n), Incarnation(n), n};
  p.guard_pid = static_cast<std::int32_t>(n);
  p.last_sent_sequence = n;
  p.last_answer_sequence = n;
  p.connected = n % 2 == 1;
  p.updated_boottime_ns = static_cast<std::int64_t>(n);
  return p;
}

class PermissionPageTest : public testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.path() + "/permission";
};

TEST_F(PermissionPageTest, IsReadAsItWasPublished) {
  Result<PermissionWriter> writer = PermissionWriter::open(path_, kBoot);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  writer->publish(numbered(7));
  const Result<PermissionReader> reader = PermissionReader::open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->read(kBoot), numbered(7));
  writer->publish(numbered(8));
  EXPECT_EQ(reader->read(kBoot), numbered(8));
}

TEST_F(PermissionPageTest, APageOfAnotherBootPermitsNothing) {
  PermissionWriter::open(path_, kBoot)->publish(numbered(7));
  const Result<PermissionReader> reader = PermissionReader::open(path_);
  EXPECT_EQ(reader->read(kOtherBoot), std::nullopt);
  // The next guard of that boot starts from nothing …
  Result<PermissionWriter> writer = PermissionWriter::open(path_, kOtherBoot);
  EXPECT_EQ(reader->read(kOtherBoot), PublishedPermission());
  // … and one of the same boot from what stands there.
  writer->publish(numbered(9));
  const Result<PermissionWriter> again = PermissionWriter::open(path_, kOtherBoot);
  EXPECT_EQ(reader->read(kOtherBoot), numbered(9));
}

TEST_F(PermissionPageTest, MissingAndShortFilesAreNotRead) {
  EXPECT_EQ(PermissionReader::open(path_).error().code, ErrorCode::NotFound);
  std::ofstream(path_) << "short";
  EXPECT_FALSE(PermissionReader::open(path_).ok());
}

TEST_F(PermissionPageTest, AReaderNeverSeesHalfAChange) {
  Result<PermissionWriter> writer = PermissionWriter::open(path_, kBoot);
  const Result<PermissionReader> reader = PermissionReader::open(path_);
  std::atomic<bool> done{false};
  std::jthread publisher([&] {
    for (std::uint64_t n = 1; n <= 50'000; ++n) {
      writer->publish(numbered(n));
      for (int i = 0; i < 10; ++i) {  // a guard rests far longer between two changes
        static_cast<void>(reader->read(kBoot));
      }
    }
    done = true;
  });
  std::uint64_t last = 0;
  while (!done) {
    const std::optional<PublishedPermission> seen = reader->read(kBoot);
    ASSERT_TRUE(seen.has_value());
    const std::uint64_t n = seen->last_sent_sequence;
    ASSERT_EQ(*seen, numbered(n));
    ASSERT_GE(n, last);
    last = n;
  }
}

}  // namespace
}  // namespace bmgpu::agent
