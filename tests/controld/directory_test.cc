#include "controld/directory.h"

#include <gtest/gtest.h>

#include "bmgpu/v1/market.pb.h"
#include "controld/views.h"
#include "store/memory/memory_journal.h"

namespace bmgpu::controld {
namespace {

constexpr Instant kNow(1'700'000'000'000);

class DirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    journal = std::move(store::open_memory_journal(storage).value());
    ASSERT_TRUE(journal->load());
  }
  // Keeps the documents, as the loop does.
  void keep() {
    store::Batch batch;
    batch.at = kNow;
    batch.documents = std::move(documents);
    documents.clear();
    ASSERT_TRUE(journal->append(batch, Sequence()));
  }
  TokenView create(api::Role role, const std::string& name, Duration lifetime = Duration()) {
    TokenSpec spec{role, name, AccountId(), "", "", lifetime};
    if (role == api::Role::NodeJoin) {
      spec.node_name = "n-" + name;
      spec.site_name = "default";
    }
    Result<TokenView> token = directory.create_token(spec, AccountId(7), kNow, documents);
    EXPECT_TRUE(token.ok());
    return *token;
  }

  store::MemoryStorage storage;
  std::unique_ptr<store::Journal> journal;
  Directory directory{std::string(32, 'k'), 100};
  Directory::Documents documents;
};

TEST_F(DirectoryTest, TokensAuthenticateUntilTheyEndOrAreRevoked) {
  const TokenView token = create(api::Role::Tenant, "alice", hours(1));
  const std::string secret = directory.secret_text(token.id);
  const Result<api::Identity> who = directory.authenticate(secret, kNow);
  ASSERT_TRUE(who.ok());
  EXPECT_EQ(who->account, token.account);
  EXPECT_EQ(who->role, api::Role::Tenant);
  EXPECT_FALSE(directory.authenticate(secret + "0", kNow));
  EXPECT_FALSE(directory.authenticate("", kNow));
  EXPECT_FALSE(directory.authenticate(secret, kNow + hours(1)));
  ASSERT_TRUE(directory.revoke_token(token.id, kNow, documents));
  EXPECT_FALSE(directory.authenticate(secret, kNow));
}

TEST_F(DirectoryTest, EverythingIsThereAgainAfterALoad) {
  const TokenView alice = create(api::Role::Tenant, "alice");
  const TokenView join = create(api::Role::NodeJoin, "j");
  const Result<Directory::Joined> joined = directory.join(join.id, "n-j", kNow, documents);
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(directory.count_start(Instant(), Instant(1), {}, documents).number, 1U);
  keep();
  Directory again(std::string(32, 'k'), 100);
  ASSERT_TRUE(again.load(*journal));
  EXPECT_TRUE(again.authenticate(directory.secret_text(alice.id), kNow));
  const Result<api::Identity> node = again.authenticate(again.secret_text(joined->token), kNow);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->role, api::Role::Node);
  EXPECT_EQ(node->node, joined->node.id);
  EXPECT_EQ(again.node_by_name("n-j")->owner, AccountId(7));
  EXPECT_EQ(again.count_start(Instant(), Instant(2), {}, documents).number, 2U);
  EXPECT_FALSE(again.join(join.id, "n-j", kNow, documents));
}

TEST_F(DirectoryTest, StoredDocumentsHoldNoSecret) {
  const TokenView token = create(api::Role::Operator, "root");
  const std::string secret = directory.secret_text(token.id);
  const std::string digits = secret.substr(secret.rfind('_') + 1);
  for (const store::Document& document : documents) {
    EXPECT_EQ(document.bytes.find(digits), std::string::npos);
  }
}

TEST_F(DirectoryTest, NamesOfLiveTokensAreUnique) {
  const TokenView first = create(api::Role::Tenant, "alice");
  TokenSpec spec{api::Role::Tenant, "alice", AccountId(), "", "", Duration()};
  EXPECT_FALSE(directory.create_token(spec, AccountId(7), kNow, documents));
  ASSERT_TRUE(directory.revoke_token(first.id, kNow, documents));
  EXPECT_TRUE(directory.create_token(spec, AccountId(7), kNow, documents));
}

TEST_F(DirectoryTest, JoinTokensAreForOneNodeOnceAndShort) {
  TokenSpec spec{api::Role::NodeJoin, "j", AccountId(), "a", "default", minutes(11)};
  EXPECT_FALSE(directory.create_token(spec, AccountId(7), kNow, documents));
  spec.lifetime = Duration();
  const Result<TokenView> token = directory.create_token(spec, AccountId(7), kNow, documents);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(*token->expires, kNow + minutes(10));
  EXPECT_FALSE(directory.join(token->id, "b", kNow, documents));
  EXPECT_TRUE(directory.join(token->id, "a", kNow, documents));
  EXPECT_FALSE(directory.join(token->id, "a", kNow, documents));
}

TEST_F(DirectoryTest, ATokenThatEndedIsNotShownAsLive) {
  const TokenView token = create(api::Role::Tenant, "alice", hours(1));
  EXPECT_EQ(token_view(token, kNow).state(), "live");
  EXPECT_EQ(token_view(token, kNow + hours(1)).state(), "expired");
  const TokenView join = create(api::Role::NodeJoin, "j");
  EXPECT_EQ(token_view(join, kNow).state(), "live");
  ASSERT_TRUE(directory.join(join.id, "n-j", kNow, documents));
  EXPECT_EQ(token_view(*directory.token(join.id), kNow).state(), "used");
}

TEST_F(DirectoryTest, AKnownNameIsTheSameNodeWithANewBearer) {
  const auto token_at = [&](Instant at, const char* name) {
    TokenSpec spec{api::Role::NodeJoin, name, AccountId(), "a", "default", Duration()};
    return directory.create_token(spec, AccountId(7), at, documents)->id;
  };
  auto join = [&, at = kNow]() mutable {
    at = at + seconds(1);
    return directory.join(token_at(at, "j"), "a", at, documents).value();
  };
  const std::uint64_t old = token_at(kNow, "old");
  const auto works = [&](std::uint64_t token) {
    return directory.authenticate(directory.secret_text(token), kNow).ok();
  };
  const Directory::Joined first = join();
  EXPECT_FALSE(directory.join(old, "a", kNow + seconds(2), documents));  // made before it joined
  const Directory::Joined second = join();
  EXPECT_EQ(second.node.id, first.node.id);
  EXPECT_EQ(second.ended_tokens, std::vector<std::uint64_t>{first.token});
  EXPECT_FALSE(works(first.token));
  EXPECT_TRUE(works(second.token));
  EXPECT_EQ(directory.remove_node(second.node.id, kNow, documents),
            std::vector<std::uint64_t>{second.token});
  EXPECT_FALSE(works(second.token));
  EXPECT_FALSE(directory.node_by_name("a"));
  EXPECT_TRUE(directory.nodes().empty());
  EXPECT_EQ(directory.node(first.node.id)->name, "a");
  keep();
  Directory again(std::string(32, 'k'), 100);
  ASSERT_TRUE(again.load(*journal));
  EXPECT_TRUE(again.node(first.node.id)->removed);
  EXPECT_NE(join().node.id, first.node.id);
}

TEST_F(DirectoryTest, SweepKeepsUsesAndDropsWhatEndedADayAgo) {
  const TokenView token = create(api::Role::Tenant, "alice");
  const TokenView short_lived = create(api::Role::Tenant, "bob", hours(1));
  documents.clear();
  EXPECT_TRUE(directory.sweep(kNow).empty());
  ASSERT_TRUE(directory.authenticate(directory.secret_text(token.id), kNow + minutes(5)));
  EXPECT_EQ(directory.sweep(kNow + minutes(5)).size(), 1U);
  EXPECT_TRUE(directory.sweep(kNow + minutes(5)).empty());
  const Directory::Documents dropped = directory.sweep(kNow + hours(26));
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].bytes, "");
  EXPECT_FALSE(directory.token(short_lived.id));
}

TEST_F(DirectoryTest, TheNumberOfTokensIsLimited) {
  Directory small(std::string(32, 'k'), 2);
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(small.create_token({api::Role::Tenant, name, AccountId(), "", "", Duration()},
                                   AccountId(), kNow, documents));
  }
  const Result<TokenView> third = small.create_token(
      {api::Role::Tenant, "c", AccountId(), "", "", Duration()}, AccountId(), kNow, documents);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::ResourceExhausted);
}

}  // namespace
}  // namespace bmgpu::controld
