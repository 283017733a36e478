#include "cli/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace bmgpu::cli {
namespace {

TEST(JsonTest, PrintsEveryKind) {
  Json array = Json::array();
  array.push(Json()).push(true).push(-1).push(std::numeric_limits<std::uint64_t>::max()).push("x");
  Json object = Json::object();
  object.set("b", std::move(array)).set("a", Json::object());
  EXPECT_EQ(object.dump(), R"({"b":[null,true,-1,18446744073709551615,"x"],"a":{}})");
}

TEST(JsonTest, SetReplacesAndKeepsTheOrder) {
  Json object = Json::object();
  object.set("a", 1).set("b", 2).set("a", 3);
  EXPECT_EQ(object.dump(), R"({"a":3,"b":2})");
  EXPECT_NE(object.find("b"), nullptr);
  EXPECT_EQ(object.find("c"), nullptr);
}

TEST(JsonTest, AnyBytesGiveAValidDocument) {
  Json text(std::string_view("q\" b\\ n\n \x01 \xff 漢\0z", 18));
  EXPECT_EQ(text.dump(), "\"q\\\" b\\\\ n\\u000a \\u0001 \xef\xbf\xbd 漢\\u0000z\"");
}

}  // namespace
}  // namespace bmgpu::cli
