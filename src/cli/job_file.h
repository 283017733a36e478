// `bmcli run -f job.yaml`: the options of run as a file. docs/reference/job-file.md has the schema.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace bmgpu::cli {

struct JobFile {
  // By the option's name with hyphens, as it would be given: {"gpus", "2"}, {"max-price", "1.2"}.
  std::map<std::string, std::string, std::less<>> values;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> env_from;   // names taken from bmcli's own environment
  std::vector<std::string> env_files;  // paths, made relative to the job file's folder
  std::vector<std::string> argv;
  bool no_wait = false;
};

// An unknown key is an error that names the nearest; values are checked where they are used. The
// paths in it (workdir, env_file) are relative to the file's own folder.
Result<JobFile> load_job_file(const std::string& path);
Result<JobFile> parse_job_file(std::string_view text, const std::string& path);

}  // namespace bmgpu::cli
