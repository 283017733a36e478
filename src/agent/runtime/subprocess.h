// Runs a program to its end with a deadline. No shell: an argv array, always.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

struct RunOptions {
  std::chrono::milliseconds deadline{10'000};  // then SIGKILL
  std::string input;                           // its standard input
  std::size_t output_bytes_max = 1024 * 1024;  // of each stream; the rest is dropped
  int network_namespace = -1;                  // enter this one first
};

struct RunOutcome {
  int exit_code = 0;  // 128 + signal if it was killed
  std::string out;
  std::string err;
};

// Thread-safe. Every exit code is an outcome; an error means that it could not be run or that its
// deadline passed (DeadlineExceeded).
Result<RunOutcome> run(const std::vector<std::string>& command, const RunOptions& options = {});

// As run(), but an exit code other than 0 is an error too; its message ends with the program's own
// last words. The standard output otherwise.
Result<std::string> run_ok(const std::vector<std::string>& command, const RunOptions& options = {});

// The absolute path of `program`: itself if it holds a '/', else looked for in PATH and the usual
// folders of administration programs. NotFound says so.
Result<std::string> find_program(const std::string& program);

}  // namespace bmgpu::agent
