#include "cli/job_plan.h"

#include <algorithm>

#include "bmgpu/v1/market.pb.h"
#include "cli/env_vars.h"
#include "cli/job_file.h"
#include "cli/text.h"
#include "cli/values.h"
#include "cli/words.h"
#include "wire/json.h"

namespace bmgpu::cli {
namespace {

Error mistake(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

// Options of the command line over those of a job file.
class Sources {
 public:
  Sources(const Arguments& arguments, const JobFile& file, std::string file_name)
      : arguments_(arguments), file_(file), file_name_(std::move(file_name)) {}

  struct Given {
    std::string text;
    std::string name;  // for messages: "--gpus" or "job.yaml: gpus"
  };
  std::optional<Given> find(const std::string& option) const {
    if (const auto text = arguments_.value(option)) {
      return Given{*text, "--" + option};
    }
    const auto found = file_.values.find(option);
    if (found == file_.values.end()) {
      return std::nullopt;
    }
    std::string key = option;
    std::ranges::replace(key, '-', '_');
    return Given{found->second, file_name_ + ": " + key};
  }

  // Keeps `target` if the option is absent.
  void text(const std::string& option, std::string& target) const {
    if (const auto given = find(option)) {
      target = given->text;
    }
  }
  template <typename Read>
  void number(const std::string& option, std::int64_t& target, const Read& read) {
    const auto given = find(option);
    if (!given || !outcome_) {
      return;
    }
    const Result<std::int64_t> value = read(given->text, given->name);
    if (value) {
      target = *value;
    } else {
      outcome_ = value.error();
    }
  }
  // The first mistake of number().
  const Result<void>& outcome() const { return outcome_; }

 private:
  const Arguments& arguments_;
  const JobFile& file_;
  std::string file_name_;
  Result<void> outcome_;
};

Result<ResourcePlan> read_resources(Sources& sources) {
  ResourcePlan plan;
  sources.number("gpus", plan.gpus, [](const std::string& text, const std::string& name) {
    return count_value(text, name, 1, kGpusMax);
  });
  sources.text("gpu", plan.gpu);
  sources.number("min-mem", plan.gpu_memory_mib_min, size_mib_value);
  sources.number("cpus", plan.cpu_millis, cpu_millis_value);
  sources.number("memory", plan.memory_mib, size_mib_value);
  sources.number("scratch", plan.scratch_mib, size_mib_value);
  sources.number("duration", plan.duration_ms, duration_ms_value);
  sources.number("max-price", plan.max_price_micros, money_value);
  if (!sources.outcome()) {
    return sources.outcome().error();
  }
  return plan;
}

// The reference's own grammar is the registry's affair; what must never get through is a text that
// some program on the way takes for an option or for shell syntax.
Result<void> check_image(const std::string& image) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
  if (image.empty()) {
    return mistake("--image is missing: an image reference or one of the market's aliases");
  }
  const bool starts_well = std::isalnum(static_cast<unsigned char>(image.front())) != 0;
  if (!starts_well || image.find_first_not_of(kAllowed) != std::string::npos ||
      image.size() > JobLimits::kImageBytesMax) {
    return mistake("image \"" + printable(image.substr(0, 80)) +
                   "\" is not an image reference: letters, digits and . _ - / : @, a letter or "
                   "digit first, at most 255 characters");
  }
  return {};
}

Result<void> check_command(const std::vector<std::string>& command) {
  std::size_t bytes = 0;
  for (const std::string& word : command) {
    bytes += word.size() + 1;
    if (word.find('\0') != std::string::npos || !wire::is_utf8(word)) {
      return mistake("the command holds a NUL byte or invalid UTF-8");
    }
  }
  if (bytes > JobLimits::kCommandBytesMax) {
    return mistake("the command is " + std::to_string(bytes) +
                   " bytes long; the limit is 131072. Put it into a file and use --workdir");
  }
  if (command.size() > JobLimits::kCommandWordsMax) {
    return mistake("the command has " + std::to_string(command.size()) +
                   " words; the limit is 4096. Put it into a file and use --workdir");
  }
  if (!command.empty() && command.front().empty()) {
    return mistake("the command's first word is empty");
  }
  return {};
}

Result<void> read_command(const Sources& sources, const Arguments& arguments, const JobFile& file,
                          JobPlan& plan) {
  const auto& rest = arguments.rest();
  if (rest && arguments.has("command")) {
    return mistake("the command is given twice, by --command and after --");
  }
  if (rest) {
    plan.command = *rest;
  } else if (!file.argv.empty() && !arguments.has("command")) {
    plan.command = file.argv;
  } else if (const auto given = sources.find("command")) {
    Result<Words> words = split_words(given->text);
    if (!words) {
      return mistake(given->name + ": " + words.error().message);
    }
    plan.command = std::move(words->words);
    plan.shell_syntax = std::move(words->shell_syntax);
  }
  return check_command(plan.command);
}

Result<void> read_env(const Arguments& arguments, const JobFile& file, const Variable& variable,
                      JobPlan& plan) {
  EnvVars env(variable);
  Result<void> added;
  const auto add_all = [&](const std::vector<std::string>& items, const auto& add) {
    for (std::size_t i = 0; added && i < items.size(); ++i) {
      added = add(items[i]);
    }
  };
  const auto from_file = [&](const std::string& path) { return env.add_file(path); };
  const auto from_word = [&](const std::string& word) { return env.add(word, "--env"); };
  // The later outweighs the earlier: the job file, then the command line.
  add_all(file.env_files, from_file);
  add_all(file.env_from, [&](const std::string& name) { return env.add_from(name, "env_from"); });
  for (std::size_t i = 0; added && i < file.env.size(); ++i) {
    added = env.set(file.env[i].first, file.env[i].second, "env");
  }
  add_all(arguments.values("env-file"), from_file);
  add_all(arguments.values("env"), from_word);
  plan.env = env.take();
  std::size_t bytes = 0;
  for (const auto& [name, value] : plan.env) {
    bytes += name.size() + value.size() + 2;
  }
  if (added && (plan.env.size() > JobLimits::kEnvVariablesMax || bytes > JobLimits::kEnvBytesMax)) {
    return mistake("the environment is too large: at most 1000 variables and 256 KiB");
  }
  return added;
}

Result<void> check_word(const std::string& value, const std::string& what,
                        const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, value) != choices.end()) {
    return {};
  }
  std::string listed;
  for (const std::string& choice : choices) {
    listed += (listed.empty() ? "" : " or ") + choice;
  }
  return mistake(what + ": " + printable(value) + " is not " + listed);
}

Result<void> check_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (name.size() > 63 || name.find_first_not_of(kAllowed) != std::string::npos) {
    return mistake("name \"" + printable(name.substr(0, 80)) +
                   "\" is not 1 to 63 lower-case letters, digits and hyphens");
  }
  return {};
}

void fill_resources(const ResourcePlan& plan, v1::Resources& resources) {
  resources.set_gpus(static_cast<std::uint32_t>(plan.gpus));
  resources.set_gpu(plan.gpu);
  resources.set_gpu_memory_mib_min(plan.gpu_memory_mib_min);
  resources.set_cpu_millis(plan.cpu_millis);
  resources.set_memory_mib(plan.memory_mib);
  resources.set_scratch_mib(plan.scratch_mib);
}

}  // namespace

std::vector<OptionSpec> resource_options() {
  return {
      {.name = "gpus", .letter = 'g', .value = "N", .help = "Whole GPUs on one node; default 1"},
      {.name = "gpu", .value = "MODEL", .help = "Words of the model's name, such as A100"},
      {.name = "min-mem", .value = "SIZE", .help = "Memory per GPU, at least, such as 40G"},
      {.name = "duration", .value = "TIME", .help = "How long at most, such as 2h or 90m"},
      {.name = "cpus", .value = "N", .help = "CPUs; default: the GPUs' share of the node"},
      {.name = "memory", .value = "SIZE", .help = "RAM; default: the GPUs' share of the node"},
      {.name = "scratch",
       .value = "SIZE",
       .help = "Disk in the job; default: the GPUs' share of the node"},
      {.name = "max-price", .value = "PRICE", .help = "Per GPU-hour; dearer is refused"},
  };
}

std::vector<OptionSpec> job_options() {
  return {
      {.name = "file",
       .letter = 'f',
       .value = "FILE",
       .help = "Job file; options given here outweigh it",
       .completes = Completes::File},
      {.name = "image", .value = "IMAGE", .help = "Image reference or an alias of the market"},
      {.name = "command",
       .value = "LINE",
       .help = "The job's command, split into words as a shell does; no shell runs it"},
      {.name = "env",
       .letter = 'e',
       .value = "NAME[=VALUE]",
       .help = "Set a variable; without =VALUE it is passed on from here",
       .repeats = true},
      {.name = "env-file",
       .value = "FILE",
       .help = "Lines of NAME=VALUE",
       .repeats = true,
       .completes = Completes::File},
      {.name = "workdir",
       .value = "DIR",
       .help = "Upload this folder; the job starts in it",
       .completes = Completes::Folder},
      {.name = "network",
       .value = "MODE",
       .help = "nat (default) or no network at all",
       .choices = {"nat", "none"}},
      {.name = "restart",
       .value = "POLICY",
       .help = "May the market start it again elsewhere; default host-failure",
       .choices = {"host-failure", "never"}},
      {.name = "name", .value = "NAME", .help = "For people: lower-case letters, digits, hyphens"},
      {.name = "quote", .value = "ID", .help = "Take this quote at its prices"},
      {.name = "no-wait", .value = "", .help = "Be refused rather than wait for free GPUs"},
  };
}

Result<ResourcePlan> resource_plan(const Arguments& arguments) {
  const JobFile none;
  Sources sources(arguments, none, "");
  Result<ResourcePlan> plan = read_resources(sources);
  if (plan && plan->duration_ms == 0) {
    return mistake("--duration is missing: how long at most, such as 2h");
  }
  return plan;
}

Result<JobPlan> job_plan(const Arguments& arguments, const Variable& variable) {
  JobFile file;
  const std::string file_name = arguments.value("file").value_or("");
  if (!file_name.empty()) {
    Result<JobFile> loaded = load_job_file(file_name);
    if (!loaded) {
      return loaded.error();
    }
    file = std::move(*loaded);
  }
  Sources sources(arguments, file, file_name);
  JobPlan plan;
  plan.network = "nat";
  plan.restart = "host-failure";
  plan.no_wait = file.no_wait || arguments.has("no-wait");
  sources.text("image", plan.image);
  sources.text("workdir", plan.workdir);
  sources.text("network", plan.network);
  sources.text("restart", plan.restart);
  sources.text("name", plan.name);
  sources.text("quote", plan.quote);
  Result<ResourcePlan> resources = read_resources(sources);
  if (!resources) {
    return resources.error();
  }
  plan.resources = *resources;
  if (plan.resources.duration_ms == 0) {
    return mistake("--duration is missing: how long at most, such as 2h");
  }
  Result<void> checked = check_image(plan.image);
  checked = checked ? check_name(plan.name) : checked;
  checked = checked ? check_word(plan.network, "network", {"nat", "none"}) : checked;
  checked = checked ? check_word(plan.restart, "restart", {"host-failure", "never"}) : checked;
  checked = checked ? read_command(sources, arguments, file, plan) : checked;
  checked = checked ? read_env(arguments, file, variable, plan) : checked;
  return checked ? Result<JobPlan>(std::move(plan)) : checked.error();
}

void fill(const ResourcePlan& plan, v1::CreateQuoteRequest& request) {
  fill_resources(plan, *request.mutable_resources());
  request.set_duration_ms(plan.duration_ms);
  request.set_max_price_micros_per_gpu_hour(plan.max_price_micros);
}

void fill(const JobPlan& plan, v1::PlaceOrderRequest& request) {
  fill_resources(plan.resources, *request.mutable_resources());
  request.set_duration_ms(plan.resources.duration_ms);
  request.set_max_price_micros_per_gpu_hour(plan.resources.max_price_micros);
  request.set_quote(plan.quote);
  request.set_refuse_if_unavailable(plan.no_wait);
  request.set_restart(plan.restart == "never" ? v1::RESTART_POLICY_NEVER
                                              : v1::RESTART_POLICY_HOST_FAILURE);
  v1::JobSpec& job = *request.mutable_job();
  job.set_image(plan.image);
  job.mutable_command()->Assign(plan.command.begin(), plan.command.end());
  for (const auto& [name, value] : plan.env) {
    v1::EnvVar& variable = *job.add_env();
    variable.set_name(name);
    variable.set_value(value);
  }
  job.set_network(plan.network == "none" ? v1::NETWORK_MODE_NONE : v1::NETWORK_MODE_NAT);
  job.set_name(plan.name);
  job.set_has_workdir(!plan.workdir.empty());
}

}  // namespace bmgpu::cli
