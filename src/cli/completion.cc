#include <algorithm>

#include "cli/commands.h"
#include "cli/context.h"

namespace bmgpu::cli {
namespace {

// One command of the tree with the words that lead to it: "" for the root, "nodes drain".
struct Entry {
  std::string path;
  const CommandSpec* command;
};

void collect(const CommandSpec& command, const std::string& path, std::vector<Entry>& entries) {
  entries.push_back({path, &command});
  for (const CommandSpec& below : command.commands) {
    collect(below, path.empty() ? below.name : path + " " + below.name, entries);
  }
}

std::vector<Entry> entries_of(const CommandSpec& root) {
  std::vector<Entry> entries;
  collect(root, "", entries);
  return entries;
}

std::vector<OptionSpec> options_of(const CommandSpec& command) {
  std::vector<OptionSpec> options = command.options;
  options.insert(options.end(), global_options().begin(), global_options().end());
  return options;
}

// What may stand where a plain word is expected.
std::vector<std::string> plain_words(const CommandSpec& command) {
  std::vector<std::string> words;
  std::ranges::transform(command.commands, std::back_inserter(words), &CommandSpec::name);
  for (const OperandSpec& operand : command.operands) {
    words.insert(words.end(), operand.choices.begin(), operand.choices.end());
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

// Text for inside '…' of a POSIX shell.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out;
}

// What may follow `option` as its value, as a bash completion command; "" for free text.
std::string bash_values(const OptionSpec& option) {
  if (!option.choices.empty()) {
    return "compgen -W '" + joined(option.choices) + "' -- \"$word\"";
  }
  if (option.completes == Completes::Nothing) {
    return "";
  }
  return std::string("compgen -") + (option.completes == Completes::File ? "f" : "d") +
         " -- \"$word\"";
}

std::string bash_case(const Entry& entry) {
  std::vector<std::string> words = plain_words(*entry.command);
  std::string values;
  for (const OptionSpec& option : options_of(*entry.command)) {
    words.push_back("--" + option.name);
    if (option.value.empty()) {
      continue;
    }
    const std::string letter = option.letter == 0 ? "" : std::string("|-") + option.letter;
    const std::string command = bash_values(option);
    values += "        --" + option.name + letter + ") " +
              (command.empty() ? "" : "mapfile -t COMPREPLY < <(" + command + "); ") +
              "return ;;\n";
  }
  const bool files = std::ranges::any_of(entry.command->operands, [](const OperandSpec& operand) {
    return operand.completes == Completes::File;
  });
  return "    '" + entry.path + "')\n      case \"$before\" in\n" + values +
         "      esac\n      words='" + joined(words) + "'" + (files ? "; files=yes" : "") + " ;;\n";
}

std::string bash_script(const CommandSpec& root) {
  std::string groups;   // commands that lead to others
  std::string skipped;  // options before the command whose value is the next word
  std::string cases;
  for (const OptionSpec& option : global_options()) {
    skipped += option.value.empty() ? "" : "      --" + option.name + ") i=$((i + 1)) ;;\n";
  }
  for (const Entry& entry : entries_of(root)) {
    if (!entry.command->commands.empty() && !entry.path.empty()) {
      groups += (groups.empty() ? "" : "|") + entry.path;
    }
    cases += bash_case(entry);
  }
  return "# bash completion of bmcli: source <(bmcli completion bash)\n"
         "_bmcli() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command='' words='' files='' i\n"
         "  # --name=VALUE comes as three words\n"
         "  if [[ $word == = ]]; then\n"
         "    word=''\n"
         "  elif [[ $before == = ]]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  fi\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"${COMP_WORDS[i]}\" in\n"
         "      --) return ;;\n" +
         skipped +
         "      -*) ;;\n"
         "      *) case \"$command\" in\n"
         "           '') command=${COMP_WORDS[i]} ;;\n"
         "           " +
         groups +
         ") command=\"$command ${COMP_WORDS[i]}\" ;;\n"
         "         esac ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case \"$command\" in\n" +
         cases +
         "  esac\n"
         "  mapfile -t COMPREPLY < <([[ -z $files ]] || compgen -f -- \"$word\" || :\n"
         "                           compgen -W \"$words\" -- \"$word\")\n"
         "}\n"
         "complete -F _bmcli bmcli\n";
}

std::string zsh_script(const CommandSpec& root) {
  // zsh runs bash's completion functions, so that there is one of them to get right.
  return "#compdef bmcli\n"
         "# zsh completion of bmcli: source <(bmcli completion zsh)\n"
         "autoload -U +X compinit && compinit -u\n"
         "autoload -U +X bashcompinit && bashcompinit\n"
         "mapfile() {  # bash's builtin, as far as it is used below\n"
         "  local line; COMPREPLY=()\n"
         "  while IFS= read -r line; do COMPREPLY+=(\"$line\"); done\n"
         "}\n" +
         bash_script(root);
}

// The condition under which fish offers what belongs to `entry`.
std::string fish_condition(const Entry& entry) {
  if (entry.path.empty()) {
    return "__fish_use_subcommand";
  }
  std::string condition;
  std::string_view rest = entry.path;
  while (!rest.empty()) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    condition += (condition.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
                 std::string(rest.substr(0, blank));
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  std::vector<std::string> below;
  std::ranges::transform(entry.command->commands, std::back_inserter(below), &CommandSpec::name);
  return condition +
         (below.empty() ? "" : "; and not __fish_seen_subcommand_from " + joined(below));
}

std::string fish_option(const OptionSpec& option) {
  std::string words = " -l " + option.name;
  words += option.letter == 0 ? "" : std::string(" -s ") + option.letter;
  if (!option.value.empty()) {
    words += option.completes == Completes::Nothing ? " -x" : " -rF";
  }
  words += option.choices.empty() ? "" : " -a '" + joined(option.choices) + "'";
  return words + " -d '" + quoted(option.help) + "'";
}

std::string fish_script(const CommandSpec& root) {
  std::string script =
      "# fish completion of bmcli: bmcli completion fish | source\n"
      "complete -c bmcli -f\n";
  for (const Entry& entry : entries_of(root)) {
    const std::string line = "complete -c bmcli -n '" + fish_condition(entry) + "'";
    for (const CommandSpec& below : entry.command->commands) {
      script += line + " -a " + below.name + " -d '" + quoted(below.summary) + "'\n";
    }
    for (const OptionSpec& option : entry.command->options) {
      script += line + fish_option(option) + "\n";
    }
    for (const OperandSpec& operand : entry.command->operands) {
      script += operand.choices.empty() ? "" : line + " -a '" + joined(operand.choices) + "'\n";
      script += operand.completes == Completes::File ? line + " -F\n" : "";
    }
  }
  for (const OptionSpec& option : global_options()) {
    script += "complete -c bmcli" + fish_option(option) + "\n";
  }
  return script;
}

Answer run_completion(Context& context, const Arguments& arguments) {
  const std::string shell = arguments.operand(0);
  std::string script;
  if (shell == "bash") {
    script = bash_script(context.root());
  } else if (shell == "zsh") {
    script = zsh_script(context.root());
  } else if (shell == "fish") {
    script = fish_script(context.root());
  } else {
    return usage_failure("no completion for that shell; there are bash, zsh, fish");
  }
  Json document = Json::object();
  document.set("shell", shell).set("script", script);
  return {std::move(script), std::move(document)};
}

}  // namespace

CommandSpec completion_command() {
  return {.name = "completion",
          .summary = "Print a shell's completion script",
          .operands = {{.name = "SHELL",
                        .help = "bash, zsh or fish",
                        .choices = {"bash", "zsh", "fish"}}},
          .examples = {{"source <(bmcli completion bash)", "For this bash session"},
                       {"bmcli completion fish > ~/.config/fish/completions/bmcli.fish",
                        "For every fish session"}},
          .run = run_completion};
}

}  // namespace bmgpu::cli
