// `bmsim chaos`.
#pragma once

namespace CLI {
class App;
}

namespace bmgpu::sim {

// Adds the command to `app`; when it was given, `exit_code` says how it went.
void add_chaos(CLI::App& app, int& exit_code);

}  // namespace bmgpu::sim
