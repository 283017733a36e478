// What the market says about its reasons, as text.
#pragma once

#include <string>

#include "cli/table.h"

namespace bmgpu::v1 {
class ExplainResponse;
}

namespace bmgpu::cli {

// The lines, then each gate with what holds it shut.
std::string explanation_text(const v1::ExplainResponse& response, Colours colours);

}  // namespace bmgpu::cli
