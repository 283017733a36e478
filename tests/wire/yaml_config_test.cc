#include "wire/yaml_config.h"

#include <gtest/gtest.h>

namespace bmgpu::wire {
namespace {

struct Settings {
  std::string state_dir = "/var/lib/x";
  std::int64_t limit = 5;
  bool quick = false;
  std::size_t format = 0;
  std::vector<std::string> stores;
  std::vector<std::pair<std::string, std::string>> images;
};

Result<Settings> read(std::string_view text) {
  Result<YamlConfig> file = YamlConfig::parse(text, "t.yaml");
  if (!file) {
    return file.error();
  }
  Settings s;
  YamlSection root = file->root();
  root.text("state_dir", s.state_dir);
  root.integer("limit", s.limit, 1, 100);
  root.boolean("quick", s.quick);
  root.text_list("stores", s.stores);
  root.text_map("images", s.images);
  YamlSection log = root.section("log");
  log.choice("format", {"text", "json"}, s.format);
  const Result<void> checked = file->finish();
  return checked ? Result<Settings>(s) : Result<Settings>(checked.error());
}

std::string refusal(std::string_view text) {
  const Result<Settings> r = read(text);
  return r ? "accepted" : r.error().message;
}

TEST(YamlConfigTest, ReadsEveryKindAndKeepsDefaults) {
  const Result<Settings> r = read(
      "state_dir: /srv\nquick: true\nstores: [a, b]\nimages: {z: zed, a: ay}\nlog: {format: "
      "json}\n");
  ASSERT_TRUE(r.ok()) << r.error().message;
  EXPECT_EQ(r->state_dir, "/srv");
  EXPECT_EQ(r->limit, 5);
  EXPECT_TRUE(r->quick);
  EXPECT_EQ(r->format, 1u);
  EXPECT_EQ(r->stores, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(r->images.size(), 2u);
  EXPECT_EQ(r->images[0].first, "z");
}

TEST(YamlConfigTest, AnEmptyFileIsAllDefaults) {
  EXPECT_TRUE(read("").ok());
  EXPECT_TRUE(read("# nothing\nlog:\n").ok());
}

TEST(YamlConfigTest, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(refusal("limit: 3\nstate_dri: /srv\n"),
            "t.yaml:2: state_dri: unknown key; did you mean state_dir?");
  EXPECT_EQ(refusal("log:\n  fromat: json\n"),
            "t.yaml:2: log.fromat: unknown key; did you mean log.format?");
  EXPECT_EQ(refusal("zzzzzzzzzzz: 1\n"), "t.yaml:1: zzzzzzzzzzz: unknown key");
}

TEST(YamlConfigTest, WrongValuesSayWhatIsWanted) {
  EXPECT_EQ(refusal("limit: 101"),
            "t.yaml:1: limit: must be a whole number from 1 to 100, not '101'");
  EXPECT_EQ(refusal("limit: 4x"),
            "t.yaml:1: limit: must be a whole number from 1 to 100, not '4x'");
  EXPECT_EQ(refusal("log: {format: xml}"), "t.yaml:1: log.format: must be text or json, not 'xml'");
  EXPECT_EQ(refusal("stores: a"), "t.yaml:1: stores: must be a list of texts");
  EXPECT_EQ(refusal("log: 3"), "t.yaml:1: log: must be a map of keys to values");
  EXPECT_EQ(refusal("- 1\n- 2\n"), "t.yaml: must be a map of keys to values");
}

TEST(YamlConfigTest, TheFirstMistakeOfTheFileWins) {
  EXPECT_EQ(refusal("unknown_thing: 1\nlimit: 0\n"), "t.yaml:1: unknown_thing: unknown key");
}

TEST(YamlConfigTest, RefusesBrokenAndHostileFiles) {
  EXPECT_NE(refusal("a: [1, 2\nb: 3"), "accepted");
  EXPECT_EQ(refusal("limit: 1\nlimit: 2\n"), "t.yaml: line 2: the key 'limit' stands here twice");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 0; k < 9; ++k) {
      bomb += ", " + last;
    }
    bomb += "]\n";
  }
  EXPECT_EQ(refusal(bomb), "t.yaml: more than 10,000 values or 32 levels");
}

TEST(YamlConfigTest, AMissingFileSaysSo) {
  const Result<YamlConfig> r = YamlConfig::load("/nonexistent/agent.yaml");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace bmgpu::wire
