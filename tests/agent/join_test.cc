// `bm-agent join` against a real bmd.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/join.h"
#include "agent/market_process.h"
#include "agent/node_file.h"
#include "agent/runtime/node_fixture.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/join_token.h"

namespace bmgpu::agent {
namespace {

class JoinTest : public testing::Test {
 protected:
  Result<v1::NodeFile> join_as(const std::string& folder, const std::string& token) {
    AgentConfig config;
    config.state_dir = dir_.file(folder);
    return join(config, token);
  }
  static std::string why(const Result<v1::NodeFile>& outcome) {
    return outcome ? "joined" : outcome.error().message;
  }
  bool joined(const std::string& folder) const { return read_node_file(dir_.file(folder)).ok(); }

  MarketProcess market_;
  TempDir dir_;
};

TEST_F(JoinTest, ATokenWorksOnce) {
  const std::string token = market_.join_token("gpu7");
  const Result<v1::NodeFile> first = join_as("a", token + "\n");
  ASSERT_TRUE(first.ok()) << why(first);
  EXPECT_EQ(first->name(), "gpu7");
  EXPECT_EQ(first->market().size(), 16u);
  struct stat facts {};
  ASSERT_EQ(stat(node_file_path(dir_.file("a")).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  const Result<v1::NodeFile> second = join_as("b", token);
  EXPECT_NE(why(second).find("used already"), std::string::npos) << why(second);
  EXPECT_FALSE(joined("b"));
}

TEST_F(JoinTest, ATokenIsForOneName) {
  v1::JoinToken token = *wire::decode_join_token(market_.join_token("gpu7"));
  token.set_node("gpu8");
  const Result<v1::NodeFile> wrong = join_as("a", wire::encode_join_token(token));
  EXPECT_NE(why(wrong).find("gpu"), std::string::npos) << why(wrong);
  EXPECT_FALSE(joined("a"));
  token.set_node("gpu7");
  EXPECT_TRUE(join_as("a", wire::encode_join_token(token)).ok());
}

TEST_F(JoinTest, ANameThatIsTakenSaysWhatToDo) {
  const std::string first = market_.join_token("gpu7");
  const std::string second = market_.join_token("gpu7");
  ASSERT_TRUE(join_as("a", first).ok());
  const Result<v1::NodeFile> taken = join_as("b", second);
  EXPECT_NE(why(taken).find("a node named gpu7 has joined already"), std::string::npos)
      << why(taken);
  EXPECT_NE(why(taken).find("bmcli nodes remove gpu7"), std::string::npos) << why(taken);
  EXPECT_FALSE(joined("b"));
}

TEST_F(JoinTest, AnExpiredTokenSaysWhatToDo) {
  const std::string token = market_.join_token("gpu7", 1);
  std::string last;
  EXPECT_TRUE(eventually([&] {
    last = why(join_as("a", token));
    return last != "joined";
  }));
  EXPECT_NE(last.find("token"), std::string::npos) << last;
  EXPECT_FALSE(joined("a"));
}

TEST_F(JoinTest, DamagedTokensAreRefusedBeforeAnythingIsSent) {
  const std::string token = market_.join_token("gpu7");
  EXPECT_NE(why(join_as("a", "bm1_tenant_123")).find("bmj1."), std::string::npos);
  EXPECT_NE(why(join_as("a", token.substr(0, token.size() - 9))).find("damaged"),
            std::string::npos);
  EXPECT_NE(why(join_as("a", "")).find("join token"), std::string::npos);
  EXPECT_TRUE(join_as("a", token).ok());
}

TEST_F(JoinTest, AMachineIsInOneMarket) {
  ASSERT_TRUE(join_as("a", market_.join_token("gpu7")).ok());
  const Result<v1::NodeFile> other = join_as("a", market_.join_token("gpu8"));
  EXPECT_NE(why(other).find("bm-agent leave"), std::string::npos) << why(other);
  EXPECT_EQ(read_node_file(dir_.file("a"))->name(), "gpu7");
}

TEST_F(JoinTest, AMarketThatCannotBeReachedIsNamed) {
  v1::JoinToken token = *wire::decode_join_token(market_.join_token("gpu7"));
  market_.kill();
  const Result<v1::NodeFile> outcome = join_as("a", wire::encode_join_token(token));
  EXPECT_NE(why(outcome).find(token.url()), std::string::npos) << why(outcome);
}

TEST_F(JoinTest, AMarketWithAnotherAuthorityIsRefused) {
  v1::JoinToken token = *wire::decode_join_token(market_.join_token("gpu7"));
  const std::string right = token.ca_sha256();
  token.set_ca_sha256(std::string(64, '0'));
  EXPECT_FALSE(join_as("a", wire::encode_join_token(token)).ok());
  token.set_ca_sha256(right);
  EXPECT_TRUE(join_as("a", wire::encode_join_token(token)).ok());
}

}  // namespace
}  // namespace bmgpu::agent
