#include "sim/engine/sim_disk.h"

#include <gtest/gtest.h>

namespace bmgpu::sim {
namespace {

store::Batch batch_of(std::uint64_t quote) {
  store::Batch batch;
  batch.events.emplace_back(core::QuoteClosed{QuoteId(quote)});
  return batch;
}

// How many events a crash right after `appends` appends leaves behind.
std::size_t left_after_crash(DiskHonesty honesty, int appends) {
  SimDisk disk(honesty);
  {
    const auto journal = disk.open();
    EXPECT_TRUE(journal->load().ok());
    for (int i = 0; i < appends; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      EXPECT_EQ(journal->append(batch_of(at + 1), Sequence(at)).value(), Sequence(at + 1));
    }
  }
  return disk.open()->load()->tail.size();
}

TEST(SimDiskTest, KeepsWhatItAcknowledged) {
  EXPECT_EQ(left_after_crash(DiskHonesty::Durable, 3), 3u);
}

TEST(SimDiskTest, OneThatAcknowledgesEarlyLosesTheLast) {
  EXPECT_EQ(left_after_crash(DiskHonesty::AcknowledgesEarly, 3), 2u);
}

TEST(SimDiskTest, AFullOneWritesNothing) {
  SimDisk disk(DiskHonesty::Durable);
  const auto journal = disk.open();
  ASSERT_TRUE(journal->load().ok());
  disk.set_full(true);
  EXPECT_FALSE(journal->append(batch_of(1), Sequence()).ok());
  EXPECT_TRUE(journal->load()->tail.empty());
  disk.set_full(false);
  EXPECT_TRUE(journal->append(batch_of(1), Sequence()).ok());
}

}  // namespace
}  // namespace bmgpu::sim
