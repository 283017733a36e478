#include "cli/commands.h"
#include "cli/context.h"
#include "cli/help.h"

namespace bmgpu::cli {
namespace {

std::string tree_text(const CommandSpec& command, const std::string& above) {
  std::string text;
  for (const CommandSpec& below : command.commands) {
    const std::string name = above + " " + below.name;
    text += below.commands.empty() ? name + "  — " + below.summary + "\n" : tree_text(below, name);
  }
  return text;
}

Answer run_commands(Context& context, const Arguments&) {
  return {tree_text(context.root(), "bmcli"), help_json(context.root())};
}

}  // namespace

CommandSpec commands_command() {
  return {.name = "commands",
          .summary = "List every command; with --json, the whole tree with options and examples",
          .examples = {{"bmcli commands --json", "Everything that bmcli can do, for a program"}},
          .run = run_commands};
}

}  // namespace bmgpu::cli
