#include "wire/ids.h"

#include <gtest/gtest.h>

#include <limits>

namespace bmgpu::wire {
namespace {

TEST(IdsTest, PrintsAndParsesEveryKind) {
  EXPECT_EQ(to_text(AccountId(1)), "account-1");
  EXPECT_EQ(to_text(NodeId(2)), "node-2");
  EXPECT_EQ(to_text(OfferId{NodeId(2), ClassId(5)}), "offer-2-5");
  EXPECT_EQ(*parse_id<AccountId>("account-1"), AccountId(1));
  EXPECT_EQ(*parse_id<NodeId>("node-2"), NodeId(2));
  EXPECT_EQ(*parse_id<GpuId>("gpu-12"), GpuId(12));
  EXPECT_EQ(*parse_id<ClassId>("class-3"), ClassId(3));
  EXPECT_EQ(*parse_id<SiteId>("site-3"), SiteId(3));
  EXPECT_EQ(*parse_id<QuoteId>("quote-3"), QuoteId(3));
  EXPECT_EQ(*parse_id<OrderId>("order-9"), OrderId(9));
  EXPECT_EQ(*parse_id<LeaseId>("lease-17"), LeaseId(17));
  EXPECT_EQ(*parse_id<TokenId>("token-4"), TokenId(4));
  EXPECT_EQ(*parse_id<OfferId>("offer-2-5"), (OfferId{NodeId(2), ClassId(5)}));
}

TEST(IdsTest, TakesTheLargestNumberAndRefusesTheNext) {
  EXPECT_EQ(*parse_id<LeaseId>("lease-18446744073709551615"),
            LeaseId(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(parse_id<LeaseId>("lease-18446744073709551616").ok());
}

TEST(IdsTest, HasOneTextForOneId) {
  ASSERT_TRUE(parse_id<LeaseId>("lease-1").ok());
  for (const char* text : {"", "lease", "lease-", "lease-0", "lease-01", "lease--1", "lease-+1",
                           "lease-1 ", " lease-1", "Lease-1", "lease-1x", "lease-0x1", "lease_1",
                           "order-1", "lease-1-2", "lease-１"}) {
    const auto parsed = parse_id<LeaseId>(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::InvalidArgument);
  }
  for (const char* text : {"offer-1", "offer-1-", "offer--1", "offer-1-0", "offer-1-2-3"}) {
    EXPECT_FALSE(parse_id<OfferId>(text).ok()) << text;
  }
}

TEST(IdsTest, SaysWhatAnIdLooksLike) {
  EXPECT_EQ(parse_id<LeaseId>("order-1").error().message,
            "'order-1' is no lease id; one looks like lease-17");
  EXPECT_LT(parse_id<LeaseId>(std::string(1'000'000, 'x')).error().message.size(), 200U);
}

TEST(IdsTest, FindsTheKindOfAnId) {
  EXPECT_EQ(*parse_any_id("order-9"), AnyId(OrderId(9)));
  EXPECT_EQ(*parse_any_id("lease-9"), AnyId(LeaseId(9)));
  EXPECT_EQ(*parse_any_id("offer-1-2"), AnyId(OfferId{NodeId(1), ClassId(2)}));
  EXPECT_FALSE(parse_any_id("9").ok());
  EXPECT_FALSE(parse_any_id("orders-9").ok());
}

}  // namespace
}  // namespace bmgpu::wire
