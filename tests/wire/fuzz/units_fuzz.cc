// Sizes, durations and money: what parses prints, and what was printed parses to the same value.
#include <cstdlib>

#include "wire/units.h"

namespace {

void need(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

namespace bmgpu::wire {
namespace {

int run_one(std::string_view text) {
  if (const auto bytes = parse_size(text); bytes.ok()) {
    need(*bytes > 0 && *parse_size(print_size(*bytes)) == *bytes);
    need(!print_size_short(*bytes).empty());
  }
  if (const auto duration = parse_duration(text); duration.ok()) {
    need(duration->count() > 0 && *parse_duration(print_duration(*duration)) == *duration);
  }
  if (const auto money = parse_money(text); money.ok()) {
    need(money->count() > 0 && *parse_money(print_money(*money)) == *money);
  }
  if (const auto count = parse_count(text, "things", 1, 64); count.ok()) {
    need(*count >= 1 && *count <= 64);
  }
  return 0;
}

}  // namespace

}  // namespace bmgpu::wire

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::wire::run_one({reinterpret_cast<const char*>(data), size});
}
