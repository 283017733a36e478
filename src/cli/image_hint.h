// What a tenant can do when a node could not get the image.
#pragma once

#include <string>

namespace bmgpu::v1 {
class Order;
}

namespace bmgpu::cli {

class Context;

// The market's image aliases, the one nearest to what was asked first; "" if the order did not end
// because of its image. Asks the market; if it does not answer, what it is to be asked.
std::string image_hint(Context& context, const v1::Order& order);

}  // namespace bmgpu::cli
