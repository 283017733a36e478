#include "agent/blob_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "agent/event_loop.h"
#include "agent/runtime/temp_dir.h"
#include "api/server.h"
#include "wire/hash.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

class BlobCacheTest : public testing::Test {
 protected:
  BlobCacheTest() {
    server_ = std::move(*api::Server::create(
        {}, [](std::string_view) -> Result<api::Identity> { return api::Identity{}; }));
    const auto anybody = [](const api::Identity&) { return true; };
    EXPECT_TRUE(make_dirs(dir_.file("market/tmp")).ok());
    server_->blobs({dir_.file("market"), anybody, anybody});
    port_ = *server_->listen({});
    server_->start();
    open(1 << 20);
  }
  ~BlobCacheTest() override { server_->stop(); }

  void open(std::int64_t bytes_max) {
    cache_ = std::make_unique<BlobCache>(
        *loop_, log_, dir_.file("node"),
        wire::Endpoint{"http://127.0.0.1:" + std::to_string(port_), "", "token"}, bytes_max);
  }
  // A file of the market; its name.
  std::string put(const std::string& content) {
    const std::string name = wire::hex(wire::sha256(content));
    EXPECT_TRUE(write_file(dir_.file("market/" + name), content).ok());
    return name;
  }
  Result<void> fetch(const std::vector<std::string>& hashes) {
    std::optional<Result<void>> outcome;
    cache_->fetch(
        hashes, [this](std::size_t) { ++progress_; },
        [&](const Result<void>& done) {
          outcome = done;
          loop_->stop();
        });
    loop_->after(std::chrono::seconds(10), [this] { loop_->stop(); });
    loop_->run();
    return outcome ? *outcome : Error{ErrorCode::DeadlineExceeded, "no answer"};
  }

  TempDir dir_;
  wire::Log log_{{wire::LogLevel::Off, wire::LogFormat::Text, ""}};
  std::unique_ptr<EventLoop> loop_ = std::move(*EventLoop::create());
  std::unique_ptr<api::Server> server_;
  std::uint16_t port_ = 0;
  std::unique_ptr<BlobCache> cache_;
  int progress_ = 0;
};

TEST_F(BlobCacheTest, FetchesWhatIsMissingOnce) {
  std::vector<std::string> hashes;
  for (int i = 0; i < 20; ++i) {
    hashes.push_back(put("content " + std::to_string(i)));
  }
  EXPECT_EQ(cache_->missing(hashes).size(), 20u);
  const Result<void> done = fetch(cache_->missing(hashes));
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(progress_, 19);
  EXPECT_TRUE(cache_->missing(hashes).empty());
  EXPECT_EQ(*read_file(dir_.file("node/" + hashes[7])), "content 7");
  // The same file twice in a job is one file.
  EXPECT_EQ(cache_->missing({put("new"), put("new")}).size(), 1u);
}

TEST_F(BlobCacheTest, AFileThatTheMarketLacksIsNotFound) {
  const Result<void> done = fetch({put("here"), std::string(64, 'a')});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::NotFound) << done.error().message;
}

TEST_F(BlobCacheTest, ADamagedFileIsRefusedAndNotKept) {
  const std::string name = put("right");
  ASSERT_TRUE(write_file(dir_.file("market/" + name), "wrong").ok());
  const Result<void> done = fetch({name});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::DataLoss);
  EXPECT_EQ(cache_->missing({name}).size(), 1u);
  put("right");
  EXPECT_TRUE(fetch({name}).ok());
}

TEST_F(BlobCacheTest, AMarketThatIsAwayMeansTryAgain) {
  server_->stop();
  const Result<void> done = fetch({std::string(64, 'a')});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Unavailable) << done.error().message;
}

TEST_F(BlobCacheTest, EvictsTheLeastRecentlyUsedButNothingOfTheLastMinutes) {
  const std::string old = put(std::string(600, 'o'));
  const std::string middle = put(std::string(600, 'm'));
  const std::string recent = put(std::string(600, 'r'));
  ASSERT_TRUE(fetch({old, middle, recent}).ok());
  const auto age = [this](const std::string& name, std::chrono::hours hours) {
    std::filesystem::last_write_time(dir_.file("node/" + name),
                                     std::filesystem::file_time_type::clock::now() - hours);
  };
  age(old, std::chrono::hours(3));
  age(middle, std::chrono::hours(2));
  open(1000);
  cache_->evict();
  EXPECT_FALSE(std::filesystem::exists(dir_.file("node/" + old)));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("node/" + middle)));
  EXPECT_TRUE(std::filesystem::exists(dir_.file("node/" + recent)));
}

}  // namespace
}  // namespace bmgpu::agent
