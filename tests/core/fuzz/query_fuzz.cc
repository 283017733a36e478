// Queries of `list` as strangers write them: refused, or understood, and then the normal form means
// the same.
#include <cstdlib>
#include <string_view>

#include "core/market/offer_query.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace bmgpu::core;
  const auto query = parse_offer_query({reinterpret_cast<const char*>(data), size});
  if (!query.ok()) {
    return 0;
  }
  const auto again = parse_offer_query(print(*query));
  if (print(*query).size() <= kQueryBytesMax && (!again.ok() || *again != *query)) {
    std::abort();
  }
  static_cast<void>(filter_offers(*query, {OfferRow{}}));
  return 0;
}
