#include "sim/seeds.h"

#include <charconv>

namespace bmgpu::sim {

Result<SeedRange> parse_seeds(const std::string& text, std::uint64_t count_max) {
  const char* const end = text.data() + text.size();
  SeedRange range;
  const auto [dash, first_code] = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  bool is_good = first_code == std::errc();
  if (is_good && dash != end) {
    const auto [rest, last_code] = std::from_chars(dash + 1, end, range.last);
    is_good = *dash == '-' && last_code == std::errc() && rest == end;
  }
  if (!is_good || range.last < range.first || range.last - range.first >= count_max) {
    return Error{ErrorCode::InvalidArgument, "seeds are 'A-B' with A ≤ B, at most " +
                                                 std::to_string(count_max) + " of them, not '" +
                                                 text + "'"};
  }
  return range;
}

}  // namespace bmgpu::sim
