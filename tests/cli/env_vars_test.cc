#include "cli/env_vars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

EnvVars with_own_home() {
  return EnvVars([](const std::string& name) {
    return name == "HOME" ? std::optional<std::string>("/h") : std::nullopt;
  });
}

TEST(EnvVarsTest, TheLaterValueOutweighsTheEarlier) {
  EnvVars env = with_own_home();
  EXPECT_TRUE(env.add("A=1", "--env"));
  EXPECT_TRUE(env.add("B=x=y z", "--env"));
  EXPECT_TRUE(env.add("HOME", "--env"));
  EXPECT_TRUE(env.add("A=", "--env"));
  EXPECT_THAT(env.take(), ElementsAre(Pair("A", ""), Pair("B", "x=y z"), Pair("HOME", "/h")));
}

TEST(EnvVarsTest, RefusesNamesAndValuesThatCannotBe) {
  EnvVars env = with_own_home();
  EXPECT_THAT(env.add("UNSET", "--env").error().message, HasSubstr("UNSET is not set here"));
  for (const char* bad : {"=x", "1A=x", "A-B=x", "A B=x", ""}) {
    EXPECT_FALSE(env.add(bad, "--env")) << bad;
  }
  EXPECT_FALSE(env.set("A", std::string("a\0b", 3), "env"));
  EXPECT_FALSE(env.set("A", "\xff", "env"));
  EXPECT_TRUE(env.take().empty());
}

TEST(EnvVarsTest, ReadsFilesLineByLine) {
  const TemporaryFolder folder;
  EnvVars env = with_own_home();
  const std::string good = folder.write("good", "# no\n\nA=\"quoted\"\r\nHOME\nB=1#2");
  ASSERT_TRUE(env.add_file(good));
  EXPECT_THAT(env.take(),
              ElementsAre(Pair("A", "\"quoted\""), Pair("HOME", "/h"), Pair("B", "1#2")));
  const std::string bad = folder.write("bad", "A=1\nno name=2\n");
  EXPECT_THAT(env.add_file(bad).error().message, HasSubstr("bad:2: "));
  EXPECT_THAT(env.add_file(folder.path("none")).error().message, HasSubstr("No such file"));
  EXPECT_FALSE(env.add_file(folder.path()));
}

}  // namespace
}  // namespace bmgpu::cli
