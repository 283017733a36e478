#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Answer nothing(Context&, const Arguments&) { return {}; }

CommandSpec tree() {
  CommandSpec run{.name = "run",
                  .options = {{.name = "gpus", .letter = 'g', .value = "N"},
                              {.name = "gpu", .value = "MODEL"},
                              {.name = "env", .letter = 'e', .value = "K=V", .repeats = true},
                              {.name = "mode", .value = "M", .choices = {"nat", "none"}},
                              {.name = "detach", .letter = 'd', .value = ""},
                              {.name = "yes", .letter = 'y', .value = ""}},
                  .rest = "COMMAND",
                  .run = nothing};
  CommandSpec stop{.name = "stop",
                   .operands = {{.name = "ID", .help = "which", .repeats = true}},
                   .run = nothing};
  CommandSpec cp{.name = "cp",
                 .operands = {{.name = "FROM"}, {.name = "TO", .help = "where to"}},
                 .run = nothing};
  CommandSpec drain{.name = "drain", .operands = {{.name = "NODE"}}, .run = nothing};
  CommandSpec nodes{.name = "nodes", .commands = {drain}};
  return {.name = "bmcli",
          .options = {{.name = "version", .value = ""}},
          .commands = {run, stop, cp, nodes}};
}

const CommandSpec kTree = tree();

std::string mistake(const std::vector<std::string>& line) {
  Result<Invocation> parsed = parse_command_line(kTree, line);
  return parsed ? "none" : parsed.error().message;
}

TEST(ArgumentsTest, TakesEveryWayToWriteAnOption) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"run", "--gpus", "2"}, {"run", "--gpus=2"}, {"run", "-g", "2"}, {"run", "-g2"}}) {
    Result<Invocation> parsed = parse_command_line(kTree, line);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->arguments.value("gpus"), "2");
    EXPECT_EQ(parsed->name(), "run");
  }
  Result<Invocation> letters = parse_command_line(kTree, {"run", "-dyg", "3"});
  ASSERT_TRUE(letters);
  EXPECT_TRUE(letters->arguments.has("detach"));
  EXPECT_TRUE(letters->arguments.has("yes"));
  EXPECT_EQ(letters->arguments.value("gpus"), "3");
}

TEST(ArgumentsTest, ValuesMayLookLikeAnything) {
  Result<Invocation> parsed =
      parse_command_line(kTree, {"run", "--gpu", "-x", "-e", "[1,2]", "-e", "", "--env=", "-g=2"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->arguments.value("gpu"), "-x");
  EXPECT_THAT(parsed->arguments.values("env"), ElementsAre("[1,2]", "", ""));
  EXPECT_EQ(parsed->arguments.value("gpus"), "=2");
}

TEST(ArgumentsTest, GlobalOptionsStandAnywhere) {
  Result<Invocation> parsed =
      parse_command_line(kTree, {"--config", "run", "nodes", "--json", "drain", "n1"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->name(), "nodes drain");
  EXPECT_EQ(parsed->arguments.value("config"), "run");
  EXPECT_TRUE(parsed->arguments.has("json"));
  EXPECT_EQ(parsed->arguments.operand(0), "n1");
}

TEST(ArgumentsTest, RestIsPassedOnUntouched) {
  Result<Invocation> parsed = parse_command_line(kTree, {"run", "--", "a", "--gpus", "--", "-h"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(*parsed->arguments.rest(), ElementsAre("a", "--gpus", "--", "-h"));
  EXPECT_FALSE(parsed->arguments.has("help"));
  EXPECT_FALSE(parse_command_line(kTree, {"run"})->arguments.rest());
}

TEST(ArgumentsTest, MistakesNameTheNearest) {
  EXPECT_THAT(mistake({"run", "--gpuz", "2"}), HasSubstr("did you mean --gpu"));
  EXPECT_THAT(mistake({"rnu"}), HasSubstr("did you mean run?"));
  EXPECT_THAT(mistake({"nodes", "drian"}), HasSubstr("did you mean drain?"));
  EXPECT_THAT(mistake({"run", "-x"}), HasSubstr("unknown option -x"));
  EXPECT_THAT(mistake({"run", "--mode", "nut"}), HasSubstr("not one of nat, none"));
}

TEST(ArgumentsTest, MistakesSayWhatIsMissingOrTooMuch) {
  EXPECT_THAT(mistake({}), HasSubstr("a command is missing"));
  EXPECT_THAT(mistake({"nodes"}), HasSubstr("nodes needs a command; there are drain"));
  EXPECT_THAT(mistake({"run", "--gpus"}), HasSubstr("--gpus needs a value"));
  EXPECT_THAT(mistake({"run", "--gpus", "--", "x"}), HasSubstr("--gpus needs a value"));
  EXPECT_THAT(mistake({"run", "-g", "1", "-g", "2"}), HasSubstr("--gpus is given twice"));
  EXPECT_THAT(mistake({"run", "--detach=yes"}), HasSubstr("takes no value"));
  EXPECT_THAT(mistake({"run", "x"}), HasSubstr("put -- before COMMAND"));
  EXPECT_THAT(mistake({"cp", "a"}), HasSubstr("TO is missing: where to"));
  EXPECT_THAT(mistake({"cp", "a", "b", "c"}), HasSubstr("unexpected argument c"));
  EXPECT_THAT(mistake({"stop"}), HasSubstr("ID is missing"));
  EXPECT_THAT(mistake({"stop", "a", "--", "b"}), HasSubstr("nothing may follow --"));
  EXPECT_EQ(mistake({"stop", "a", "b", "c"}), "none");
  EXPECT_EQ(mistake({"cp", "--help"}), "none");
  EXPECT_EQ(mistake({"--help"}), "none");
}

TEST(ArgumentsTest, RefusesInvalidUtf8Everywhere) {
  EXPECT_THAT(mistake({"run", "\xff"}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(mistake({"run", "--gpu", "\xff"}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(mistake({"run", "--gpu=\xff"}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(mistake({"run", "--", "\xff"}), HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace bmgpu::cli
