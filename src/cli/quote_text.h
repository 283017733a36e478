// A quote as people read it before they agree.
#pragma once

#include <cstdint>
#include <string>

#include "cli/table.h"

namespace bmgpu::v1 {
class Quote;
}

namespace bmgpu::cli {

// GPUs, node, price, total, end, cap, and what is not billed. `max_price_micros` 0 = no limit
// asked.
// "  name         value": value printable. REQUIRES: the name has at most 12 letters.
std::string text_row(const std::string& name, const std::string& value);

std::string quote_text(const v1::Quote& quote, std::int64_t max_price_micros);

// Each factor of the first GPU's first slot and the price per GPU-hour after it.
std::string factors_text(const v1::Quote& quote, Colours colours);

}  // namespace bmgpu::cli
