// How a command fails: what people read, what scripts test.
#pragma once

#include <string>

#include "base/result.h"

namespace bmgpu::cli {

// docs/reference/bmcli.md has the list for people.
enum class ExitCode {
  Ok = 0,
  Refused = 1,  // the rules or the present state forbid it
  Usage = 2,    // the command line, a file or a value is malformed
  NotFound = 3,
  Auth = 4,         // no token, a wrong one, or one whose role may not do this
  Unreachable = 5,  // the market did not answer
  JobFailed = 6,    // the job did not end by itself with exit code 0
};

struct Failure {
  ExitCode exit_code = ExitCode::Refused;
  std::string code;         // "not_found"; a closed list
  std::string message;      // one sentence
  std::string hint;         // what to do next; may be empty
  std::string detail = {};  // the words of a program behind the market, for --json; may be empty
};

Failure failure_of(const Error& error, std::string hint = {});
Failure usage_failure(std::string message, std::string hint = {});

}  // namespace bmgpu::cli
