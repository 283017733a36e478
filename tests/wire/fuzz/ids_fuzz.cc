// Ids: one text for one id.
#include <cstdlib>

#include "wire/ids.h"

namespace bmgpu::wire {
namespace {

int run_one(std::string_view text) {
  const auto id = parse_any_id(text);
  if (id.ok() && std::visit([](const auto& found) { return to_text(found); }, *id) != text) {
    std::abort();
  }
  return 0;
}

}  // namespace

}  // namespace bmgpu::wire

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::wire::run_one({reinterpret_cast<const char*>(data), size});
}
