#include "wire/json.h"

#include <gtest/gtest.h>

namespace bmgpu::wire {
namespace {

TEST(JsonTest, KnowsUtf8) {
  for (const char* text : {"", "plain", "ä", "日本", "\xf0\x9f\x9a\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text :
       {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(JsonTest, ObjectsRoundTrip) {
  const JsonObject object{{"a", "1"}, {"quote\"d", "x\\y\n\x01"}, {"z", ""}};
  EXPECT_EQ(*parse_json_object(print_json_object(object)), object);
  EXPECT_EQ(print_json_object({}), "{}");
}

TEST(JsonTest, KeepsTextMembersOnly) {
  EXPECT_EQ(*parse_json_object(R"({"a":"1","b":2,"c":null,"d":{}})"), (JsonObject{{"a", "1"}}));
  EXPECT_FALSE(parse_json_object("[]").ok());
  EXPECT_FALSE(parse_json_object("").ok());
}

}  // namespace
}  // namespace bmgpu::wire
