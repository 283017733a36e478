// Starts a process that outlives this one.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

// Runs `argv` as a child of init in a session of its own: no terminal, nothing of ours open, no
// blocked signal, standard input and output /dev/null, standard error appended to `error_file`
// (created 0600). argv[0] is a path. Thread-safe.
Result<void> spawn_detached(const std::vector<std::string>& argv, const std::string& error_file);

// The path of the running program, for running it again with another subcommand.
std::string own_program();

}  // namespace bmgpu::agent
