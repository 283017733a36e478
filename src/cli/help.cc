#include "cli/help.h"

#include <algorithm>

#include "cli/text.h"

namespace bmgpu::cli {
namespace {

// Two columns, the right one starting at the same place in every line.
std::string columns(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::size_t width = 0;
  for (const auto& [left, right] : lines) {
    width = std::max(width, display_width(left));
  }
  std::string out;
  for (const auto& [left, right] : lines) {
    out += "  " + left + std::string(width - display_width(left) + 2, ' ') + right + "\n";
  }
  return out;
}

std::string written(const OptionSpec& option) {
  const std::string letter = option.letter == 0 ? "    " : std::string("-") + option.letter + ", ";
  return letter + "--" + option.name + (option.value.empty() ? "" : " " + option.value);
}

std::string described(const OptionSpec& option) {
  std::string text = option.help;
  if (!option.choices.empty()) {
    text += " (";
    for (const std::string& choice : option.choices) {
      text += (text.ends_with('(') ? "" : ", ") + choice;
    }
    text += ")";
  }
  return text + (option.repeats ? "; may be repeated" : "");
}

std::string usage_line(const Invocation& invocation) {
  const CommandSpec& command = invocation.command();
  std::string line = "bmcli";
  line += invocation.path.size() > 1 ? " " + invocation.name() : "";
  if (!command.commands.empty()) {
    return line + " COMMAND [OPTIONS]";
  }
  line += command.options.empty() ? "" : " [OPTIONS]";
  for (const OperandSpec& operand : command.operands) {
    const std::string name = operand.name + (operand.repeats ? "…" : "");
    line += operand.required ? " " + name : " [" + name + "]";
  }
  return line + (command.rest.empty() ? "" : " [-- " + command.rest + "]");
}

std::string options_section(const std::string& title, const std::vector<OptionSpec>& options) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const OptionSpec& option : options) {
    lines.emplace_back(written(option), described(option));
  }
  return lines.empty() ? "" : "\n" + title + ":\n" + columns(lines);
}

Json option_json(const OptionSpec& option) {
  Json json = Json::object();
  json.set("name", "--" + option.name);
  json.set("letter", option.letter == 0 ? Json() : Json(std::string("-") + option.letter));
  json.set("value", option.value.empty() ? Json() : Json(option.value));
  json.set("help", option.help);
  json.set("choices", option.choices);
  json.set("repeats", option.repeats);
  return json;
}

Json options_json(const std::vector<OptionSpec>& options) {
  Json json = Json::array();
  for (const OptionSpec& option : options) {
    json.push(option_json(option));
  }
  return json;
}

}  // namespace

std::string help_text(const Invocation& invocation) {
  const CommandSpec& command = invocation.command();
  std::string text = command.summary + ".\n\nUsage: " + usage_line(invocation) + "\n";
  text += command.description.empty() ? "" : "\n" + command.description + "\n";
  std::vector<std::pair<std::string, std::string>> lines;
  for (const CommandSpec& below : command.commands) {
    lines.emplace_back(below.name, below.summary);
  }
  text += lines.empty() ? "" : "\nCommands:\n" + columns(lines);
  lines.clear();
  for (const OperandSpec& operand : command.operands) {
    lines.emplace_back(operand.name, operand.help);
  }
  text += lines.empty() ? "" : "\nArguments:\n" + columns(lines);
  text += options_section("Options", command.options);
  text += options_section("Everywhere", global_options());
  text += command.examples.empty() ? "" : "\nExamples:\n";
  for (const ExampleSpec& example : command.examples) {
    text += "  # " + example.what + "\n  " + example.line + "\n";
  }
  return text;
}

Json help_json(const CommandSpec& command) {
  Json operands = Json::array();
  for (const OperandSpec& operand : command.operands) {
    operands.push(Json::object()
                      .set("name", operand.name)
                      .set("help", operand.help)
                      .set("required", operand.required)
                      .set("repeats", operand.repeats));
  }
  Json examples = Json::array();
  for (const ExampleSpec& example : command.examples) {
    examples.push(Json::object().set("line", example.line).set("what", example.what));
  }
  Json commands = Json::array();
  for (const CommandSpec& below : command.commands) {
    commands.push(help_json(below));
  }
  Json json = Json::object();
  json.set("name", command.name).set("summary", command.summary);
  json.set("description", command.description);
  json.set("operands", std::move(operands)).set("options", options_json(command.options));
  json.set("rest", command.rest.empty() ? Json() : Json(command.rest));
  json.set("examples", std::move(examples)).set("commands", std::move(commands));
  if (command.name == "bmcli") {
    json.set("global_options", options_json(global_options()));
  }
  return json;
}

}  // namespace bmgpu::cli
