// Starts programs that outlive us: shims and the podman service.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

// Runs `command` in a session of its own, as a child of init, in `folder` (where it and its
// children leave what they name without a path), with an empty standard input, both outputs
// appended to `log_path`, none of our other files open, and outside our service's cgroup (in the
// cgroup `cgroup`, "/name", of the trees that service managers watch; best effort). Returns once
// the program runs; an error says why it does not.
Result<void> start_detached(const std::vector<std::string>& command, const std::string& folder,
                            const std::string& log_path, const std::string& cgroup);

}  // namespace bmgpu::agent
