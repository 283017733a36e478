// The whole program as a function: what main() calls, and what tests call.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/environment.h"

namespace bmgpu::cli {

// The tree of all commands.
const CommandSpec& command_tree();

// Runs one command line (without the program's name) and returns the exit code. With --json exactly
// one JSON document goes to `environment.out`, whatever happens.
int run_bmcli(Environment& environment, const std::vector<std::string>& line);

}  // namespace bmgpu::cli
