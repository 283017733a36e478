// Bytes of a damaged journal: refused without a trace, or events that encode to what they were.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "store/encoding.h"

namespace bmgpu::store {
namespace {

int run_one(std::string_view bytes) {
  std::vector<core::Event> events;
  if (!decode_events(bytes, events).ok()) {
    if (!events.empty()) {
      std::abort();
    }
    return 0;
  }
  EventEncoder encoder;
  std::vector<core::Event> again;
  if (!decode_events(encoder.encode(events), again).ok() || again != events) {
    std::abort();
  }
  return 0;
}

}  // namespace
}  // namespace bmgpu::store

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::store::run_one({reinterpret_cast<const char*>(data), size});
}
