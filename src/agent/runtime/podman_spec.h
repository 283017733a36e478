// The body of libpod's containers/create. Pure.
#pragma once

#include <string>

#include "agent/runtime/podman.h"

namespace bmgpu::agent {

std::string container_json(const ContainerSpec& spec);

}  // namespace bmgpu::agent
