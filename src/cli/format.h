// Values of the market as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/table.h"

namespace bmgpu::v1 {
class Node;
class Order;
class Offer;
}  // namespace bmgpu::v1

namespace bmgpu::cli {

// "2026-11-30 20:30:05 UTC", in the machine's time zone and naming it; "" for 0.
std::string time_text(std::int64_t unix_ms);

// "1.25 USD".
std::string money_text(std::int64_t micros, std::string_view currency);

// "1h30m", "42.5s" below a minute.
std::string span_text(std::int64_t ms);

// "1 file", "3 files".
std::string files_text(std::size_t count);

// "80.0 GiB"; "" for 0.
std::string mib_text(std::int64_t mib);

// The model without the maker's name, which all have in common: "A100 80GB PCIe".
std::string gpu_text(std::string_view model);

// "running", "preparing: image: 40 %", "ended: exit 3".
Cell state_cell(const v1::Order& order);

// Did its job end by itself with exit code 0?
bool succeeded(const v1::Order& order);

// Why an ended order ended: "the job ended by itself", with the evidence.
std::string end_text(const v1::Order& order);

}  // namespace bmgpu::cli
