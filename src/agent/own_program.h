// This program, for starting it again under another subcommand.
#pragma once

#include <string>

namespace bmgpu::agent {

// Its path; if the file was replaced or removed since, the running one all the same.
std::string own_program();

}  // namespace bmgpu::agent
