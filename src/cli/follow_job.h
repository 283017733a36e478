// Stays with an order from its submission to its end.
#pragma once

#include <string>

#include "cli/command.h"

namespace bmgpu::v1 {
class Order;
}

namespace bmgpu::cli {

class Context;

// Progress on standard error, the job's log on standard output (with --json no log), across lost
// connections. Ctrl-C and a lost market leave the job running and say how to come back. The
// answer's document holds "order", and "detached" if it was left before its end.
Answer follow_job(Context& context, const v1::Order& placed);

// "bmcli logs -f order-7" and so on.
std::string come_back_hint(const v1::Order& order);

}  // namespace bmgpu::cli
