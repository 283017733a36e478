#include "core/market/offer_query.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace bmgpu::core {
namespace {

OfferRow row(const char* model, std::int64_t memory_mib, std::int64_t free, std::int64_t price) {
  OfferRow made;
  made.offer.spec = GpuClassSpec{model, memory_mib, Form::Pcie};
  made.offer.gpus_total = 8;
  made.offer.gpus_free = free;
  made.offer.price = Price(price);
  made.offer.capacity = NodeCapacity{64'000, 512 * 1'024, 2'048 * 1'024};
  made.node_name = "gpu-1";
  made.site_name = "hall-a";
  made.health = 97;
  return made;
}

std::string normal(const std::string& text) {
  const auto query = parse_offer_query(text);
  return query ? print(*query) : "error: " + query.error().message;
}

bool accepts(const std::string& text, const OfferRow& made) {
  const auto query = parse_offer_query(text);
  EXPECT_TRUE(query.ok()) << text;
  return query.ok() && filter_offers(*query, {made}).rows.size() == 1;
}

TEST(OfferQueryTest, PrintsItsNormalForm) {
  EXPECT_EQ(normal(""), "");
  EXPECT_EQ(normal("   "), "");
  EXPECT_EQ(normal("gpu=A100 gpus>=2 price<1.2"), "gpu=a100 and gpus>=2 and price<1.2");
  EXPECT_EQ(normal("gpu = A100 and\tgpus >= 2"), "gpu=a100 and gpus>=2");
  EXPECT_EQ(normal("gpu=\"A100 80GB\""), "gpu=\"a100 80gb\"");
  EXPECT_EQ(normal("gpu=A100-80GB"), "gpu=\"a100 80gb\"");
  EXPECT_EQ(normal("mem>=40G"), "mem>=40GiB");
  EXPECT_EQ(normal("mem>=40960M ram>1.5T scratch<=1MiB"),
            "mem>=40GiB and ram>1536GiB and scratch<=1MiB");
  EXPECT_EQ(normal("price<=1.250000"), "price<=1.25");
  EXPECT_EQ(normal("price<0.000001"), "price<0.000001");
  EXPECT_EQ(normal("cpu>=0.5 total!=8"), "cpu>=0.5 and total!=8");
  EXPECT_EQ(normal("form=PCIe driver!=Simulated site=hall-a node!=gpu-1"),
            "form=pcie and driver!=simulated and site=hall-a and node!=gpu-1");
  EXPECT_EQ(normal("health>=100"), "health>=100");
}

TEST(OfferQueryTest, SaysWhereItIsWrongAndWhatWasMeant) {
  const std::pair<const char*, const char*> wrong[] = {
      {"gpus>=2 pirce<1", "position 9: unknown field 'pirce', did you mean 'price'?"},
      {"GPUS>=2", "position 1: unknown field 'GPUS', did you mean 'gpus'?"},
      {"gpus>=", "position 7: 'gpus' needs a value"},
      {"gpus", "position 5: 'gpus' is followed by"},
      {"gpus 2", "position 6: 'gpus' is followed by"},
      {"gpus=>2", "position 6: a blank is missing"},
      {"gpus==2", "position 6: a blank is missing"},
      {"gpus>=2price<1", "position 13: a blank is missing"},
      {"gpu>A100", "position 4: 'gpu' is compared with = or != only"},
      {"gpu=---", "position 5: '---' is not words of a GPU's name"},
      {"mem>=40", "position 6: '40' is not a size with its unit"},
      {"mem>=40X", "position 6: '40X' is not a size"},
      {"mem>=0.0001G", "position 6: '0.0001G' is not a size"},
      {"mem>=99999999999999T", "position 6"},
      {"price<1.0000001", "position 7: '1.0000001' is not a price"},
      {"price<-1", "position 7: '-1' is not a price"},
      {"price<1e3", "position 7"},
      {"gpus>=65", "position 7: '65' is not a whole number from 0 to 64"},
      {"gpus>=99999999999999999999", "position 7"},
      {"gpus>=1.5", "position 7"},
      {"health>101", "position 8"},
      {"form=round", "position 6: 'round' is not pcie, sxm or unknown"},
      {"driver=fake", "position 8: 'fake' is not real or simulated"},
      {"node=a/b", "position 6"},
      {"gpu=\"A100", "position 5: the quote is not closed"},
      {"gpus>=2 and", "position 12: a term is expected after 'and'"},
      {"and gpus>=2", "position 1: unknown field 'and'"},
      {"gpus>=2 and and gpus>=2", "position 13: unknown field 'and'"},
      {"gpus>=2 or gpus<1", "position 9: unknown field 'or'"},
      {"A100", "position 1: 'A100' is no term; for a GPU of that name write gpu=A100"},
      {"gpus>=2 h200 price<1", "position 9: 'h200' is no term; for a GPU of that name write gpu=h"},
      {"pirce", "position 1: unknown field 'pirce', did you mean 'price'?"},
      {"A100=2", "position 1: unknown field 'A100'"},
      {"A100 = 2", "position 1: unknown field 'A100'"},
      {"=2", "position 1: a term like gpus>=2 is expected"},
      {"gpus>=2\n", "position 7"},
      {"\x1b[31m=2", "position 1: unknown field '?[31m'"},
      {"gpu=\xff\xfe", "position 5: '?"},
  };
  for (const auto& [text, message] : wrong) {
    const auto query = parse_offer_query(text);
    ASSERT_FALSE(query.ok()) << text;
    EXPECT_EQ(query.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(query.error().message.find(message), std::string::npos)
        << text << " → " << query.error().message;
  }
}

TEST(OfferQueryTest, HasLimits) {
  std::string terms;
  for (std::size_t i = 0; i < kQueryTermsMax; ++i) {
    terms += "gpus>=1 ";
  }
  EXPECT_TRUE(parse_offer_query(terms).ok());
  EXPECT_FALSE(parse_offer_query(terms + "gpus>=1").ok());
  EXPECT_TRUE(parse_offer_query(std::string(kQueryBytesMax, ' ')).ok());
  EXPECT_FALSE(parse_offer_query(std::string(kQueryBytesMax + 1, ' ')).ok());
  EXPECT_TRUE(parse_offer_query("node=" + std::string(128, 'a')).ok());
  EXPECT_FALSE(parse_offer_query("node=" + std::string(129, 'a')).ok());
}

TEST(OfferQueryTest, ComparesWhatItSays) {
  const OfferRow offer = row("NVIDIA A100 80GB PCIe", 81'920, 2, 300'000);  // 1.2 per hour
  for (const char* yes :
       {"gpu=a100", "gpu!=a10", "gpus>=2", "gpus=2", "gpus<3", "total>7", "price<=1.2", "price=1.2",
        "price!=1.3", "mem>=80G", "mem=80GiB", "node=gpu-1", "site!=hall-b", "form=pcie",
        "driver=real", "health>96", "cpu>=64", "ram=512G", "scratch=2T"}) {
    EXPECT_TRUE(accepts(yes, offer)) << yes;
  }
  for (const char* no : {"gpu=a10", "gpu!=a100", "gpus>2", "total<8", "price<1.2", "price>1.2",
                         "mem>80G", "node!=gpu-1", "node=GPU-1", "site=hall-b", "form=sxm",
                         "driver=simulated", "health>97", "cpu>64", "ram<512G", "scratch!=2T"}) {
    EXPECT_FALSE(accepts(no, offer)) << no;
  }
}

TEST(OfferQueryTest, CountsWhatEachTermRemoves) {
  const auto query = parse_offer_query("gpu=a100 gpus>=2 price<1.2");
  ASSERT_TRUE(query.ok());
  const FilteredOffers filtered = filter_offers(
      *query, {row("NVIDIA A100", 40'960, 8, 250'000), row("NVIDIA A40", 46'068, 8, 1),
               row("NVIDIA A100", 40'960, 1, 1), row("NVIDIA A100", 40'960, 8, 300'000),
               row("NVIDIA H200", 141'000, 8, 1)});
  EXPECT_EQ(filtered.removed, (std::vector<std::size_t>{2, 1, 1}));
  ASSERT_EQ(filtered.rows.size(), 1U);
  EXPECT_EQ(filtered.rows[0].offer.price, Price(250'000));
}

TEST(OfferQueryPropertyTest, TheNormalFormIsReadAsTheSameQuery) {
  EXPECT_TRUE(rc::check("print then parse", [] {
    OfferQuery query;
    const int terms = *rc::gen::inRange(0, 6);
    for (int i = 0; i < terms; ++i) {
      QueryTerm term;
      term.field = static_cast<QueryField>(*rc::gen::inRange(0, 13));
      const bool is_text = term.field == QueryField::Gpu || term.field == QueryField::Node ||
                           term.field == QueryField::Site || term.field == QueryField::Form ||
                           term.field == QueryField::Driver;
      term.comparison = static_cast<QueryOperator>(*rc::gen::inRange(0, is_text ? 2 : 6));
      if (term.field == QueryField::Form) {
        term.text = *rc::gen::element<std::string>("pcie", "sxm", "unknown");
      } else if (term.field == QueryField::Driver) {
        term.text = *rc::gen::element<std::string>("real", "simulated");
      } else if (is_text) {
        term.text = *rc::gen::element<std::string>("a100", "and", "x1");
      } else {
        term.number = *rc::gen::inRange<std::int64_t>(0, 65);
      }
      query.terms.push_back(term);
    }
    const auto again = parse_offer_query(print(query));
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == query);
  }));
}

TEST(OfferQueryPropertyTest, NoInputIsFatal) {
  EXPECT_TRUE(rc::check("any bytes", [](const std::string& text) {
    const auto query = parse_offer_query(text);
    if (!query.ok()) {
      RC_ASSERT(!query.error().message.empty());
    }
  }));
}

}  // namespace
}  // namespace bmgpu::core
