// Queries of `list` as strangers write them: refused, or understood, and then the normal form means
// the same.
#include <cstdlib>
#include <string_view>

#include "core/market/offer_query.h"

namespace bmgpu::core {
namespace {

int run_one(std::string_view text) {
  const auto query = parse_offer_query(text);
  if (!query.ok()) {
    return 0;
  }
  const std::string printed = print(*query);
  const auto again = parse_offer_query(printed);
  if (printed.size() <= kQueryBytesMax && (!again.ok() || *again != *query)) {
    std::abort();
  }
  static_cast<void>(filter_offers(*query, {OfferRow{}}));
  return 0;
}

}  // namespace
}  // namespace bmgpu::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::core::run_one({reinterpret_cast<const char*>(data), size});
}
