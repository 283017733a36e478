// Files to and from a market's blob store. Private to wire.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::wire {

class HttpExchange;

// As Client declares them.
Result<void> put_file(HttpExchange& exchange, std::string_view path, const std::string& file,
                      const std::function<void(std::size_t sent)>& on_progress);
Result<void> get_file(HttpExchange& exchange, std::string_view path, const std::string& file);

}  // namespace bmgpu::wire
