// `bm-agent doctor`: everything that a node needs, checked now, with what to do about each failure.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/host/doctor.h"

namespace bmgpu::agent {

// Changes nothing. Takes seconds: it asks the driver, the engine and the market.
std::vector<DoctorCheck> run_doctor(const AgentConfig& config);

// One line a check ("ok", "warn" or "FAIL"), and below those that are not ok the advice.
std::string doctor_text(const std::vector<DoctorCheck>& checks);
// {"ok":false,"checks":[{"name":…,"verdict":"failed","detail":…,"advice":…},…]}; a verdict is "ok",
// "warning" or "failed", and ok means that none failed.
std::string doctor_json(const std::vector<DoctorCheck>& checks);

bool all_ok(const std::vector<DoctorCheck>& checks);

}  // namespace bmgpu::agent
