// The promises that hold for every command of the tree, present and future.
#include <gmock/gmock.h>

#include "command_line.h"

namespace bmgpu::cli {
namespace {

using testing::HasSubstr;

void collect(const CommandSpec& command, const std::string& above,
             std::map<std::string, const CommandSpec*>& leaves) {
  for (const CommandSpec& below : command.commands) {
    const std::string name = above.empty() ? below.name : above + " " + below.name;
    if (below.commands.empty()) {
      leaves[name] = &below;
    } else {
      collect(below, name, leaves);
    }
  }
}

std::map<std::string, const CommandSpec*> leaves() {
  std::map<std::string, const CommandSpec*> found;
  collect(command_tree(), "", found);
  return found;
}

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    out.push_back(word);
  }
  return out;
}

// A line for each command that reaches the market. A new command must be added here.
std::map<std::string, std::string> complete_lines(const CommandLine& bmcli) {
  const std::string token = bmcli.folder().write("token", "bm1_tenant_y\n");
  return {{"login", "login http://127.0.0.1:1 --token-file " + token},
          {"list", "list"},
          {"quote", "quote -g 1 --duration 1h"},
          {"run", "run -g 1 --duration 1h --image a"},
          {"ps", "ps"},
          {"wait", "wait order-1"},
          {"logs", "logs order-1"},
          {"exec", "exec order-1 ls"},
          {"cp", "cp order-1:/x " + bmcli.folder().path()},
          {"stop", "stop order-1"},
          {"extend", "extend order-1 --by 1h"},
          {"events", "events"},
          {"explain", "explain order-1"},
          {"nodes list", "nodes list"},
          {"nodes drain", "nodes drain n"},
          {"nodes resume", "nodes resume n"},
          {"nodes remove", "nodes remove n"},
          {"nodes explain", "nodes explain n"},
          {"token create", "token create --role tenant --name a"},
          {"token list", "token list"},
          {"token revoke", "token revoke a"},
          {"doctor", "doctor"},
          {"version", "version"},
          {"completion", "completion bash"},
          {"commands", "commands"}};
}

// These answer without a market.
bool is_local(const std::string& name) {
  return name == "version" || name == "completion" || name == "commands";
}

std::string error_code(const Ran& ran) {
  const auto document = one_document(ran.out);
  if (!document) {
    return "not one JSON document: " + ran.out;
  }
  const auto error = document->fields().find("error");
  return error == document->fields().end()
             ? "none"
             : error->second.struct_value().fields().at("code").string_value();
}

struct FailureCase {
  Error error;
  int exit_code;
  std::string code;
};

TEST(EveryCommandTest, FailsWithOneDocumentAndTheRightExitCode) {
  const FailureCase cases[] = {
      {{ErrorCode::Refused, "no \x1b[2J"}, 1, "failed_precondition"},
      {{ErrorCode::InvalidArgument, "bad"}, 2, "invalid_argument"},
      {{ErrorCode::NotFound, "none"}, 3, "not_found"},
      {{ErrorCode::Unauthenticated, "who"}, 4, "unauthenticated"},
      {{ErrorCode::PermissionDenied, "you"}, 4, "permission_denied"},
      {{ErrorCode::Unavailable, "gone"}, 5, "unavailable"},
      {{ErrorCode::DataLoss, "\xff"}, 1, "data_loss"},
      {{ErrorCode::Internal, "odd"}, 1, "internal"},
  };
  for (const FailureCase& failure : cases) {
    CommandLine bmcli;
    bmcli.market.fail_everything(failure.error);
    const auto lines = complete_lines(bmcli);
    for (const auto& [name, command] : leaves()) {
      ASSERT_TRUE(lines.contains(name)) << name << " has no line in this test";
      const bool waits = failure.exit_code == 5 && name == "wait";  // it waits for the market
      if (waits) {
        continue;
      }
      std::vector<std::string> line = words(lines.at(name));
      line.push_back("--json");
      const Ran ran = bmcli.run(line);
      EXPECT_EQ(error_code(ran), is_local(name) ? "none" : failure.code) << name;
      EXPECT_EQ(ran.code, is_local(name) ? 0 : failure.exit_code) << name;
      line.pop_back();
      const Ran text = bmcli.run(line);
      EXPECT_EQ(text.code, ran.code) << name;
      EXPECT_EQ(text.err.find('\x1b'), std::string::npos) << name;
      if (!is_local(name)) {
        EXPECT_NE(text.err, "") << name;
      }
    }
  }
}

TEST(EveryCommandTest, SaysHowToLogInWithoutAConfiguration) {
  CommandLine bmcli;
  bmcli.variables["BMCLI_CONFIG"] = bmcli.folder().path("none.yaml");
  const auto lines = complete_lines(bmcli);
  for (const auto& [name, command] : leaves()) {
    if (is_local(name) || name == "login") {
      continue;
    }
    std::vector<std::string> line = words(lines.at(name));
    line.push_back("--json");
    const Ran ran = bmcli.run(line);
    EXPECT_EQ(error_code(ran), "unauthenticated") << name;
    EXPECT_EQ(ran.code, 4) << name;
    EXPECT_THAT(ran.out, HasSubstr("bmcli login")) << name;
  }
}

TEST(EveryCommandTest, ARefusedTokenHasOneHint) {
  CommandLine bmcli;
  bmcli.market.fail_everything({ErrorCode::Unauthenticated, "the token is not valid here"});
  const auto lines = complete_lines(bmcli);
  for (const auto& [name, command] : leaves()) {
    const std::string err = bmcli.run(words(lines.at(name))).err;
    const std::size_t first = err.find("bmcli login");
    EXPECT_EQ(err.find("bmcli login", first == std::string::npos ? first : first + 1),
              std::string::npos)
        << name << ": " << err;
  }
}

TEST(EveryCommandTest, RefusesMistakesBeforeAnythingIsAsked) {
  CommandLine bmcli;
  for (const auto& [name, command] : leaves()) {
    for (const char* wrong : {"--no-such-option", "--config", "-Z", "\xff"}) {
      std::vector<std::string> line = words(name);
      line.push_back("--json");
      line.push_back(wrong);
      const Ran ran = bmcli.run(line);
      EXPECT_EQ(error_code(ran), "invalid_argument") << name << " " << wrong;
      EXPECT_EQ(ran.code, 2) << name << " " << wrong;
    }
  }
  EXPECT_TRUE(bmcli.market.calls().empty());
}

TEST(EveryCommandTest, HasHelpWithExamplesThatParse) {
  CommandLine bmcli;
  for (const auto& [name, command] : leaves()) {
    std::vector<std::string> line = words(name);
    line.push_back("--help");
    const Ran text = bmcli.run(line);
    EXPECT_EQ(text.code, 0) << name;
    EXPECT_THAT(text.out, HasSubstr("Usage: bmcli " + name)) << name;
    EXPECT_THAT(text.out, HasSubstr("Examples:")) << name;
    line.push_back("--json");
    EXPECT_TRUE(one_document(bmcli.run(line).out)) << name;
    EXPECT_FALSE(command->summary.ends_with('.')) << name;
    for (const OptionSpec& option : command->options) {
      EXPECT_FALSE(option.help.empty()) << name << " --" << option.name;
    }
  }
}

TEST(EveryCommandTest, OptionNamesAndLettersAreUnique) {
  for (const auto& [name, command] : leaves()) {
    std::map<std::string, int> seen;
    for (const auto* options : {&global_options(), &command->options}) {
      for (const OptionSpec& option : *options) {
        EXPECT_EQ(++seen["--" + option.name], 1) << name << " --" << option.name;
        if (option.letter != 0) {
          EXPECT_EQ(++seen[std::string("-") + option.letter], 1) << name << " -" << option.letter;
        }
      }
    }
  }
}

TEST(EveryCommandTest, GroupsAndNothingAtAllAreUsageErrors) {
  CommandLine bmcli;
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--json"},
                                             {"nodes", "--json"},
                                             {"token", "--json"},
                                             {"lst", "--json"},
                                             {"--json", "nodes", "lst"},
                                             {"", "--json"}}) {
    const Ran ran = bmcli.run(line);
    EXPECT_EQ(error_code(ran), "invalid_argument");
    EXPECT_EQ(ran.code, 2);
  }
}

TEST(EveryCommandTest, AWrongCommandLeadsToHelp) {
  CommandLine bmcli;
  EXPECT_THAT(bmcli.run({"help"}).err, HasSubstr("see bmcli --help"));
  EXPECT_THAT(bmcli.run({}).err, HasSubstr("see bmcli --help"));
  EXPECT_THAT(bmcli.run({"nodes"}).err, HasSubstr("see bmcli nodes --help"));
}

TEST(EveryCommandTest, CompletionKnowsEveryCommandAndOption) {
  CommandLine bmcli;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Ran ran = bmcli.run({"completion", shell});
    ASSERT_EQ(ran.code, 0);
    for (const auto& [name, command] : leaves()) {
      EXPECT_THAT(ran.out, HasSubstr(words(name).back())) << shell;
      for (const OptionSpec& option : command->options) {
        EXPECT_THAT(ran.out, HasSubstr(option.name)) << shell << " " << name;
      }
    }
  }
  EXPECT_EQ(bmcli.run({"completion", "tcsh"}).code, 2);
}

TEST(EveryCommandTest, CommandsDumpTheWholeTree) {
  CommandLine bmcli;
  const Ran ran = bmcli.run({"commands", "--json"});
  ASSERT_TRUE(one_document(ran.out));
  for (const auto& [name, command] : leaves()) {
    EXPECT_THAT(ran.out, HasSubstr("\"name\":\"" + words(name).back() + "\""));
  }
  EXPECT_THAT(ran.out, HasSubstr("\"name\":\"--json\""));
}

}  // namespace
}  // namespace bmgpu::cli
