#include "cli/job_file.h"

#include <array>
#include <filesystem>

#include "cli/file.h"
#include "wire/json.h"
#include "wire/yaml_config.h"

namespace bmgpu::cli {
namespace {

struct Key {
  const char* key;     // in the file
  const char* option;  // of bmcli run
};

constexpr std::array<Key, 13> kTextKeys = {{{"name", "name"},
                                            {"image", "image"},
                                            {"command", "command"},
                                            {"gpus", "gpus"},
                                            {"gpu", "gpu"},
                                            {"min_mem", "min-mem"},
                                            {"duration", "duration"},
                                            {"cpus", "cpus"},
                                            {"memory", "memory"},
                                            {"scratch", "scratch"},
                                            {"max_price", "max-price"},
                                            {"network", "network"},
                                            {"restart", "restart"}}};

std::string beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

Result<JobFile> read_job(Result<wire::YamlConfig> file, const std::string& path) {
  if (!file) {
    return file.error();
  }
  JobFile job;
  wire::YamlSection root = file->root();
  for (const Key& key : kTextKeys) {
    std::string text;
    root.text(key.key, text);
    if (root.has(key.key)) {
      job.values[key.option] = text;
    }
  }
  std::string workdir;
  root.text("workdir", workdir);
  if (root.has("workdir")) {
    job.values["workdir"] = beside(path, workdir);
  }
  bool wait = true;
  root.boolean("wait", wait);
  job.no_wait = !wait;
  root.text_map("env", job.env);
  root.text_list("env_from", job.env_from);
  root.text_list("argv", job.argv);
  root.text_list("env_files", job.env_files);
  for (std::string& env_file : job.env_files) {
    env_file = beside(path, env_file);
  }
  if (root.has("argv") && root.has("command")) {
    root.reject("argv", "stands beside command; keep one of them");
  }
  Result<void> checked = file->finish();
  return checked ? Result<JobFile>(std::move(job)) : checked.error();
}

}  // namespace

Result<JobFile> load_job_file(const std::string& path) {
  constexpr std::size_t kBytesMax = 1024 * 1024;
  const Result<std::string> text = read_small_file(path, kBytesMax);
  return text ? parse_job_file(*text, path) : text.error();
}

Result<JobFile> parse_job_file(std::string_view text, const std::string& path) {
  if (!wire::is_utf8(text)) {
    return Error{ErrorCode::InvalidArgument, path + " is not valid UTF-8"};
  }
  return read_job(wire::YamlConfig::parse(text, path), path);
}

}  // namespace bmgpu::cli
