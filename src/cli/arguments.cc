// The one parser of command lines. Written here rather than taken from a library because the same
// specification feeds --help, completion and the JSON dump, every mistake must name the nearest
// thing that exists, and values such as "", "-x" or "[a]" must arrive as they were typed.
#include <algorithm>

#include "cli/command.h"
#include "cli/text.h"
#include "wire/json.h"

namespace bmgpu::cli {
namespace {

Error usage(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    out += (out.empty() ? "" : ", ") + word;
  }
  return out;
}

}  // namespace

std::optional<std::string> Arguments::value(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::nullopt : std::optional(found->second.back());
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>{} : found->second;
}

std::string Arguments::operand(std::size_t n) const {
  return n < operands_.size() ? operands_[n] : std::string();
}

std::string Invocation::name() const {
  std::string words;
  for (std::size_t i = 1; i < path.size(); ++i) {
    words += (words.empty() ? "" : " ") + path[i]->name;
  }
  return words;
}

// Reads the words of one command line from left to right.
class ArgumentParser {
 public:
  ArgumentParser(const CommandSpec& root, const std::vector<std::string>& line) : line_(line) {
    parsed_.path.push_back(&root);
  }

  Result<Invocation> parse() {
    while (next_ < line_.size()) {
      const std::string& word = line_[next_++];
      if (!wire::is_utf8(word)) {
        return usage("argument " + std::to_string(next_) + " is not valid UTF-8");
      }
      Result<void> read;
      if (word == "--") {
        read = read_rest();
      } else if (word.starts_with("--")) {
        read = read_long(word);
      } else if (word.size() > 1 && word.front() == '-') {
        read = read_letters(word);
      } else {
        read = read_plain(word);
      }
      if (!read) {
        return read.error();
      }
    }
    Result<void> complete = check_complete();
    return complete ? Result<Invocation>(std::move(parsed_)) : complete.error();
  }

 private:
  const CommandSpec& command() const { return parsed_.command(); }

  const OptionSpec* find_option(const auto& matches) const {
    for (const auto* options : {&global_options(), &command().options}) {
      const auto found = std::ranges::find_if(*options, matches);
      if (found != options->end()) {
        return &*found;
      }
    }
    return nullptr;
  }

  Error unknown_option(const std::string& written) const {
    std::vector<std::string> known;
    for (const auto* options : {&global_options(), &command().options}) {
      for (const OptionSpec& option : *options) {
        known.push_back("--" + option.name);
      }
    }
    const std::string near = did_you_mean(written, known);
    const std::string separator = command().rest.empty() ? "" : "; put -- before " + command().rest;
    return usage("unknown option " + printable(written) + near + (near.empty() ? see_help() : "") +
                 separator);
  }

  std::string see_help() const {
    return "; see bmcli " + (parsed_.name().empty() ? "" : parsed_.name() + " ") + "--help";
  }

  Result<void> read_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const OptionSpec* option =
        find_option([&](const OptionSpec& spec) { return spec.name == name; });
    if (option == nullptr) {
      return unknown_option("--" + name);
    }
    if (equals == std::string::npos) {
      return take(*option, "--" + name);
    }
    if (option->value.empty()) {
      return usage("--" + name + " takes no value");
    }
    return keep(*option, word.substr(equals + 1));
  }

  Result<void> read_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const OptionSpec* option =
          find_option([&](const OptionSpec& spec) { return spec.letter == word[i]; });
      if (option == nullptr) {
        return unknown_option(i == 1 ? word : std::string("-") + word[i]);
      }
      const std::string written = std::string("-") + word[i];
      if (option->value.empty() || i + 1 == word.size()) {
        if (Result<void> taken = take(*option, written); !taken) {
          return taken;
        }
        continue;
      }
      return keep(*option, word.substr(i + 1));
    }
    return {};
  }

  // A switch, or an option whose value is the next word.
  Result<void> take(const OptionSpec& option, const std::string& written) {
    if (option.value.empty()) {
      return keep(option, "");
    }
    if (next_ == line_.size() || line_[next_] == "--") {
      return usage(written + " needs a value: " + written + " " + option.value);
    }
    if (!wire::is_utf8(line_[next_])) {
      return usage("the value of " + written + " is not valid UTF-8");
    }
    return keep(option, line_[next_++]);
  }

  Result<void> read_plain(const std::string& word) {
    if (command().commands.empty()) {
      parsed_.arguments.operands_.push_back(word);
      return {};
    }
    const auto& commands = command().commands;
    const auto found = std::ranges::find(commands, word, &CommandSpec::name);
    if (found == commands.end()) {
      std::vector<std::string> names;
      std::ranges::transform(commands, std::back_inserter(names), &CommandSpec::name);
      const std::string near = did_you_mean(word, names);
      const std::string parent = parsed_.name().empty() ? "" : parsed_.name() + " ";
      return usage("unknown command " + printable(parent + word) +
                   (near.empty() ? "; there are " + listed(names) : near) + see_help());
    }
    parsed_.path.push_back(&*found);
    return {};
  }

  Result<void> read_rest() {
    std::vector<std::string> rest(line_.begin() + static_cast<std::ptrdiff_t>(next_), line_.end());
    next_ = line_.size();
    if (!std::ranges::all_of(rest, wire::is_utf8)) {
      return usage("an argument after -- is not valid UTF-8");
    }
    parsed_.arguments.rest_ = std::move(rest);
    return {};
  }

  Result<void> keep(const OptionSpec& option, const std::string& value) {
    if (!option.choices.empty() &&
        std::ranges::find(option.choices, value) == option.choices.end()) {
      return usage("--" + option.name + ": " + printable(value) + " is not one of " +
                   listed(option.choices));
    }
    std::vector<std::string>& values = parsed_.arguments.options_[option.name];
    if (!values.empty() && !option.repeats && !option.value.empty()) {
      return usage("--" + option.name + " is given twice");
    }
    values.push_back(value);
    return {};
  }

  Result<void> check_complete() const {
    const Arguments& arguments = parsed_.arguments;
    if (arguments.has("help") || arguments.has("version")) {
      return {};
    }
    if (!command().commands.empty()) {
      std::vector<std::string> names;
      std::ranges::transform(command().commands, std::back_inserter(names), &CommandSpec::name);
      const std::string name = parsed_.name();
      return usage((name.empty() ? "a command is missing" : name + " needs a command") +
                   "; there are " + listed(names) + see_help());
    }
    if (arguments.rest() && command().rest.empty()) {
      return usage("nothing may follow -- here");
    }
    const std::vector<OperandSpec>& wanted = command().operands;
    const std::size_t count = arguments.operands().size();
    if (count < wanted.size() && wanted[count].required) {
      return usage(wanted[count].name + " is missing: " + wanted[count].help);
    }
    const bool open_ended = !wanted.empty() && wanted.back().repeats;
    if (count > wanted.size() && !open_ended) {
      const std::string separator =
          command().rest.empty() ? "" : "; put -- before " + command().rest;
      return usage("unexpected argument " + printable(arguments.operands()[wanted.size()]) +
                   separator);
    }
    return {};
  }

  const std::vector<std::string>& line_;
  std::size_t next_ = 0;
  Invocation parsed_;
};

const std::vector<OptionSpec>& global_options() {
  static const std::vector<OptionSpec> options = {
      {.name = "help", .letter = 'h', .value = "", .help = "Show this help"},
      {.name = "json", .value = "", .help = "Print one JSON document instead of text"},
      {.name = "config",
       .value = "FILE",
       .help = "Read the market's address and token from FILE",
       .completes = Completes::File},
  };
  return options;
}

Result<Invocation> parse_command_line(const CommandSpec& root,
                                      const std::vector<std::string>& line) {
  return ArgumentParser(root, line).parse();
}

}  // namespace bmgpu::cli
