// What --help prints.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/json.h"

namespace bmgpu::cli {

std::string help_text(const Invocation& invocation);

// The same facts, and those of all commands below, for machines.
Json help_json(const CommandSpec& command);

}  // namespace bmgpu::cli
