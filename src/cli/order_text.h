// An order as text: everything that `run` would send.
#pragma once

#include <string>

namespace bmgpu::v1 {
class PlaceOrderRequest;
}

namespace bmgpu::cli {

// One line for each field, variable and file; printable, whatever the fields hold.
std::string order_text(const v1::PlaceOrderRequest& request);

}  // namespace bmgpu::cli
