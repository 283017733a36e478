// What one account may fill of the market's disk and memory, and what goes by itself.
#include <filesystem>
#include <fstream>

#include "integration/market_fixture.h"
#include "wire/hash.h"

namespace bmgpu::integration {
namespace {

namespace fs = std::filesystem;

class TenantLimitsTest : public MarketTest {
 protected:
  TenantLimitsTest()
      : MarketTest(
            "limits: {blob_bytes_per_account_max: 1048576, blobs_per_account_max: 4,"
            " blob_kept_hours: 1, job_bytes_per_account_max: 1048576}") {}

  Result<void> put(
      wire::Client& client, const std::string& content,
      const std::function<void(std::size_t)>& on_progress = [](std::size_t) {}) {
    const std::string file = folder_.path() + "/upload";
    std::ofstream(file) << content;
    return client.put_file("/blobs/" + name_of(content), file, on_progress);
  }
  static std::string name_of(const std::string& content) {
    return wire::hex(wire::sha256(content));
  }
  bool missing(wire::Client& client, const std::string& content) {
    v1::MissingBlobsRequest request;
    request.add_sha256(std::string(wire::as_bytes(wire::sha256(content))));
    v1::MissingBlobsResponse response;
    EXPECT_TRUE(client.call("bmgpu.v1.Market/MissingBlobs", request, response));
    return response.sha256_size() == 1;
  }
  std::string blob(const std::string& content) const {
    return bmd.state_dir() + "/blobs/" + name_of(content);
  }
  // As if it had been wanted last two hours ago.
  void age_blobs() {
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
    for (const auto& entry : fs::recursive_directory_iterator(bmd.state_dir() + "/blobs")) {
      if (entry.is_regular_file()) {
        fs::last_write_time(entry.path(), long_ago);
      }
    }
  }
  static v1::PlaceOrderRequest order_with(const std::string& content) {
    v1::PlaceOrderRequest request = order(1);
    request.mutable_job()->set_has_workdir(true);
    v1::WorkFile& file = *request.mutable_job()->add_workdir();
    file.set_path("data");
    file.set_sha256(std::string(wire::as_bytes(wire::sha256(content))));
    file.set_size(static_cast<std::int64_t>(content.size()));
    file.set_mode(0644);
    return request;
  }

  TemporaryFolder folder_;
};

TEST_F(TenantLimitsTest, UploadsAreLimitedByAccount) {
  const v1::CreateTokenResponse token = create_token(v1::ROLE_TENANT, "alice");
  const std::unique_ptr<wire::Client> alice = bmd.client(token.secret());
  const std::unique_ptr<wire::Client> bob = tenant("bob");
  const std::string most(1'000'000, 'a');
  const std::string large(100'000, 'b');
  ASSERT_TRUE(put(*alice, most));
  const Result<void> refused = put(*alice, large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(refused.error().message.find("limits.blob_bytes_per_account_max"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(fs::exists(blob(large)));
  EXPECT_TRUE(put(*bob, large));
  EXPECT_TRUE(put(*alice, "small"));
  EXPECT_TRUE(put(*alice, "small"));  // again: it counts once
  ASSERT_EQ(bmd.stop(), 0);
  ASSERT_TRUE(bmd.start());
  const std::unique_ptr<wire::Client> again = bmd.client(token.secret());
  EXPECT_FALSE(put(*again, large));
  EXPECT_TRUE(put(*again, "small too"));
}

TEST_F(TenantLimitsTest, AFileIsNamedOnlyByWhoUploadedIt) {
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  const std::unique_ptr<wire::Client> bob = tenant("bob");
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  ASSERT_TRUE(put(*alice, "secret"));
  EXPECT_TRUE(missing(*bob, "secret"));
  EXPECT_FALSE(missing(*alice, "secret"));
  v1::Order placed;
  const Result<void> refused =
      bob->call("bmgpu.v1.Market/PlaceOrder", order_with("secret"), placed, "b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order_with("secret"), placed, "a"));
  ASSERT_TRUE(put(*bob, "secret"));
  EXPECT_TRUE(bob->call("bmgpu.v1.Market/PlaceOrder", order_with("secret"), placed, "b"));
}

TEST_F(TenantLimitsTest, AnUploadThatAKillBrokeOffIsDoneAgain) {
  const v1::CreateTokenResponse token = create_token(v1::ROLE_TENANT, "alice");
  const std::string content(1'000'000, 'c');
  ASSERT_TRUE(put(*bmd.client(token.secret()), "kept"));
  EXPECT_FALSE(put(*bmd.client(token.secret()), content, [&](std::size_t sent) {
    if (sent < content.size() && bmd.runs()) {
      bmd.kill();
    }
  }));
  ASSERT_FALSE(bmd.runs());
  ASSERT_TRUE(bmd.start());
  EXPECT_TRUE(fs::is_empty(bmd.state_dir() + "/blobs/tmp"));
  const std::unique_ptr<wire::Client> alice = bmd.client(token.secret());
  EXPECT_TRUE(missing(*alice, content));
  EXPECT_FALSE(missing(*alice, "kept"));
  EXPECT_TRUE(put(*alice, content));  // what broke off does not count
  EXPECT_FALSE(missing(*alice, content));
}

TEST_F(TenantLimitsTest, FilesOfLiveOrdersStayTheOthersGo) {
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  for (const char* content : {"one", "other", "nobody's"}) {
    ASSERT_TRUE(put(*alice, content));
  }
  v1::Order first;
  v1::Order second;
  v1::Order third;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order_with("one"), first, "1"));
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order_with("one"), second, "2"));
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", order_with("other"), third, "3"));
  for (const std::string& id : {first.id(), third.id()}) {  // of two that share a file, one ends
    v1::StopOrderRequest stop;
    stop.set_id(id);
    v1::Order stopped;
    ASSERT_TRUE(alice->call("bmgpu.v1.Market/StopOrder", stop, stopped, "stop-" + id));
    watch_until(*alice, id,
                [](const v1::Order& order) { return order.state() == v1::ORDER_STATE_ENDED; });
  }
  bmd.kill();
  age_blobs();
  ASSERT_TRUE(bmd.start());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (fs::exists(blob("nobody's")) || fs::exists(blob("other"))) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_TRUE(fs::exists(blob("one")));
}

TEST_F(TenantLimitsTest, JobsOfLiveOrdersAreLimitedByAccount) {
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  v1::PlaceOrderRequest large = order(1);
  for (int i = 0; i < 6; ++i) {
    large.mutable_job()->add_command(std::string(100'000, 'x'));
  }
  const std::unique_ptr<wire::Client> alice = tenant("alice");
  const std::unique_ptr<wire::Client> bob = tenant("bob");
  v1::Order placed;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", large, placed, "1"));
  v1::Order second;
  const Result<void> refused = alice->call("bmgpu.v1.Market/PlaceOrder", large, second, "2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(refused.error().message.find("limits.job_bytes_per_account_max"), std::string::npos);
  EXPECT_TRUE(bob->call("bmgpu.v1.Market/PlaceOrder", large, second, "2"));
  v1::StopOrderRequest stop;
  stop.set_id(placed.id());
  v1::Order stopped;
  ASSERT_TRUE(alice->call("bmgpu.v1.Market/StopOrder", stop, stopped, "s"));
  watch_until(*alice, placed.id(),
              [](const v1::Order& order) { return order.state() == v1::ORDER_STATE_ENDED; });
  EXPECT_TRUE(alice->call("bmgpu.v1.Market/PlaceOrder", large, second, "2"));
}

}  // namespace
}  // namespace bmgpu::integration
