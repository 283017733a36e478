// `bm-agent doctor`: everything that a node needs, checked now, with what to do about each failure.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/host/doctor.h"

namespace bmgpu::agent {

// Changes nothing. Takes seconds: it asks the driver, the engine and the market.
std::vector<DoctorCheck> run_doctor(const AgentConfig& config);

// One line a check, and the advice below those that failed.
std::string doctor_text(const std::vector<DoctorCheck>& checks);
// {"ok":false,"checks":[{"name":…,"ok":…,"detail":…,"advice":…},…]}
std::string doctor_json(const std::vector<DoctorCheck>& checks);

bool all_ok(const std::vector<DoctorCheck>& checks);

}  // namespace bmgpu::agent
