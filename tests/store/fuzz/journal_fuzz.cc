// Bytes of a damaged journal: refused without a trace, or events that encode to what they were.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "store/encoding.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace bmgpu;
  std::vector<core::Event> events;
  if (!store::decode_events({reinterpret_cast<const char*>(data), size}, events).ok()) {
    if (!events.empty()) {
      std::abort();
    }
    return 0;
  }
  store::EventEncoder encoder;
  std::vector<core::Event> again;
  if (!store::decode_events(encoder.encode(events), again).ok() || again != events) {
    std::abort();
  }
  return 0;
}
