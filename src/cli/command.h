// The command tree as data. The parser, --help, shell completion and `bmcli commands --json` all
// read these specifications, so that none of them can disagree with another.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/failure.h"
#include "cli/json.h"

namespace bmgpu::cli {

class Context;

// What the shell offers for a value.
enum class Completes { Nothing, File, Folder };

struct OptionSpec {
  std::string name = {};   // "gpus" is written --gpus
  char letter = 0;         // 'g' is written -g; 0 = none
  std::string value = {};  // what its value is called in help; "" = a switch
  std::string help = {};
  std::vector<std::string> choices = {};  // the only values allowed; empty = any
  bool repeats = false;
  Completes completes = Completes::Nothing;
};

struct OperandSpec {
  std::string name = {};  // "ID"
  std::string help = {};
  bool required = true;
  bool repeats = false;                   // only the last one
  std::vector<std::string> choices = {};  // what the shell offers; the command checks
  Completes completes = Completes::Nothing;
};

struct ExampleSpec {
  std::string line = {};
  std::string what = {};
};

// The parsed arguments of one command.
class Arguments {
 public:
  bool has(std::string_view option) const { return options_.contains(option); }
  std::optional<std::string> value(std::string_view option) const;
  std::vector<std::string> values(std::string_view option) const;
  // The n-th operand, or "".
  std::string operand(std::size_t n) const;
  const std::vector<std::string>& operands() const { return operands_; }
  // What follows "--", and whether it was there at all.
  const std::optional<std::vector<std::string>>& rest() const { return rest_; }

 private:
  friend class ArgumentParser;
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
  std::vector<std::string> operands_;
  std::optional<std::vector<std::string>> rest_;
};

// What a command hands back. `text` goes to standard output for people; with --json, `document`
// goes there instead, with the failure in its member "error".
struct Answer {
  Answer() = default;
  Answer(std::string text_, Json document_)
      : text(std::move(text_)), document(std::move(document_)) {}
  Answer(Failure failure_) : failure(std::move(failure_)) {}  // NOLINT(*-explicit-*)
  Answer(const Error& error) : failure(failure_of(error)) {}  // NOLINT(*-explicit-*)

  std::string text;
  Json document = Json::object();
  std::optional<Failure> failure;
};

struct CommandSpec {
  std::string name = {};
  std::string summary = {};      // one line, no full stop
  std::string description = {};  // for --help; paragraphs
  std::vector<OperandSpec> operands = {};
  std::vector<OptionSpec> options = {};
  std::string rest = {};  // what may follow "--", e.g. "COMMAND [ARG…]"; "" = nothing may
  std::vector<ExampleSpec> examples = {};
  std::vector<CommandSpec> commands = {};  // a command has either these or `run`
  Answer (*run)(Context&, const Arguments&) = nullptr;
};

// Options that every command takes.
const std::vector<OptionSpec>& global_options();

// A command line, taken apart. `path` leads from the root to the command, root included.
struct Invocation {
  std::vector<const CommandSpec*> path;
  Arguments arguments;

  const CommandSpec& command() const { return *path.back(); }
  // "nodes drain"
  std::string name() const;
};

// Options may stand anywhere before "--", as --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -ab.
// Unknown ones, missing values and operands, repetition: InvalidArgument that names the nearest.
// With --help or --version, missing operands and commands are no mistake.
Result<Invocation> parse_command_line(const CommandSpec& root,
                                      const std::vector<std::string>& line);

}  // namespace bmgpu::cli
