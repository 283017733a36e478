#include "cli/bmcli.h"

#include <algorithm>
#include <ostream>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/help.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

// Before the line is understood, for the answer to one that never is.
Output wanted_output(const std::vector<std::string>& line) {
  const auto end = std::ranges::find(line, "--");
  return std::find(line.begin(), end, "--json") == end ? Output::Text : Output::Json;
}

Json failure_json(const Failure& failure) {
  return Json::object()
      .set("code", failure.code)
      .set("message", failure.message)
      .set("hint", failure.hint.empty() ? Json() : Json(failure.hint))
      .set("detail", failure.detail.empty() ? Json() : Json(failure.detail));
}

void print_failure(Environment& environment, const Failure& failure, Colours colours) {
  environment.err << styled("bmcli: ", Style::Red, colours) << printable(failure.message) << "\n";
  if (!failure.hint.empty()) {
    environment.err << "       " << failure.hint << "\n";
  }
  environment.err.flush();
}

int finish(Environment& environment, Output output, Answer answer, Colours colours) {
  if (output == Output::Json) {
    if (answer.failure) {
      answer.document.set("error", failure_json(*answer.failure));
    }
    environment.out << answer.document.dump() << "\n";
  } else {
    environment.out << answer.text;
  }
  environment.out.flush();
  if (answer.failure && output == Output::Text) {
    print_failure(environment, *answer.failure, colours);
  }
  if (!environment.out) {
    environment.err << "bmcli: cannot write to standard output\n";
    return static_cast<int>(ExitCode::Refused);
  }
  return static_cast<int>(answer.failure ? answer.failure->exit_code : ExitCode::Ok);
}

CommandSpec make_tree() {
  return {.name = "bmcli",
          .summary = "Rent GPUs on a BM-GPU market",
          .description = "Start with: bmcli login URL, then bmcli list, then bmcli run --help.",
          .operands = {},
          .options = {{.name = "version", .value = "", .help = "Same as bmcli version"}},
          .rest = "",
          .examples = {{"bmcli list --gpu=A100 --min-mem=40G", "What can be rented, at what price"},
                       {"bmcli run -g 2 --duration 2h --image pytorch:2.0 "
                        "--command \"python train.py\"",
                        "Rent two GPUs and run a job on them"}},
          .commands = {login_command(), list_command(), quote_command(), run_command(),
                       ps_command(), wait_command(), logs_command(), exec_command(), cp_command(),
                       stop_command(), extend_command(), events_command(), explain_command(),
                       nodes_command(), token_command(), doctor_command(), version_command(),
                       completion_command(), commands_command()}};
}

}  // namespace

const CommandSpec& command_tree() {
  static const CommandSpec tree = make_tree();
  return tree;
}

int run_bmcli(Environment& environment, const std::vector<std::string>& line) {
  const CommandSpec& root = command_tree();
  const Output output = wanted_output(line);
  Result<Invocation> invocation = parse_command_line(root, line);
  if (!invocation) {
    Context context(environment, root, output, std::nullopt);
    return finish(environment, output, Answer(invocation.error()), context.err_colours());
  }
  const Arguments& arguments = invocation->arguments;
  Context context(environment, root, output, arguments.value("config"));
  if (arguments.has("help")) {
    Answer help(help_text(*invocation), help_json(invocation->command()));
    return finish(environment, output, std::move(help), context.err_colours());
  }
  const CommandSpec version = version_command();
  const auto run = arguments.has("version") ? version.run : invocation->command().run;
  check(run != nullptr, "command tree: a leaf that does nothing");
  return finish(environment, output, run(context, arguments), context.err_colours());
}

}  // namespace bmgpu::cli
