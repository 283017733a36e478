// The supervisor of one attempt: everything from the scratch file to the exit code, with the agent
// and bmd dead or alive (docs/reference/runtime.md).
#pragma once

#include <string>

namespace bmgpu::agent {

// Runs the attempt whose folder this is to its end and returns the process's exit code: 0 once the
// status is ENDED and container, network and scratch are removed, or if another shim lives; 1 if
// something of the attempt could not be removed (said in shim.log; run it again).
int shim_main(const std::string& attempt_dir);

}  // namespace bmgpu::agent
