// Scenario text: commands in, events and answers out. tests/core/scenarios/README.md is the manual.
#pragma once

#include <string>

#include "core/core.h"

namespace bmgpu::core {

std::string print(const Event& event);
std::string print(const Answer& answer);
std::string print(EndReason reason);
std::string print(ReasonCode code);

// Runs a scenario; returns it with the lines that the market really gave under each command.
std::string run_scenario(const std::string& text);

}  // namespace bmgpu::core
