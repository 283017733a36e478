// Bodies of requests, errors and streams as strangers send them: refused or understood, never a
// crash; what is understood encodes and decodes to the same message.
#include <cstdlib>

#include "bmgpu/v1/market.pb.h"
#include "wire/connect.h"
#include "wire/encoding.h"
#include "wire/errors.h"
#include "wire/json.h"

namespace bmgpu::wire {
namespace {

int run_one(std::string_view bytes) {
  for (const Encoding encoding : {Encoding::Json, Encoding::Proto}) {
    v1::PlaceOrderRequest request;
    if (decode(encoding, bytes, request).ok()) {
      v1::PlaceOrderRequest back;
      if (!decode(encoding, encode(encoding, request), back).ok() ||
          back.SerializeAsString() != request.SerializeAsString()) {
        std::abort();
      }
    }
  }
  const Error error = parse_error_json(bytes, 500);
  if (!is_utf8(error_json(error))) {
    std::abort();
  }
  static_cast<void>(parse_end_stream(bytes));
  static_cast<void>(parse_stream_request(bytes));
  EnvelopeReader reader(1000);
  reader.add(bytes);
  for (;;) {
    const auto next = reader.next();
    if (!next.ok() || !next->has_value()) {
      return 0;
    }
  }
}

}  // namespace

}  // namespace bmgpu::wire

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::wire::run_one({reinterpret_cast<const char*>(data), size});
}
