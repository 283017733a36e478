// Times and ranges of hours as people write them: what parses lies where it may, and its normal
// form parses to the same.
#include <cstdlib>

#include "wire/daily_range.h"
#include "wire/human_time.h"

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
  constexpr Instant kNow{1'796'072'400'000};
  const TimeZone zone = TimeZone::find("Europe/Berlin").value();
  if (const auto time = parse_time(text, kNow, zone); time.ok()) {
    need(time->at >= Instant() && time->at < kTimeMax);
    const Instant whole = slot_start(slot_of(time->at));
    need(parse_time(print_time(whole, TimeZone::utc()), kNow, zone)->at == whole);
  }
  if (const auto range = parse_daily_range(text, zone); range.ok()) {
    need(*parse_daily_range(print(*range), TimeZone::utc()) == *range);
    Instant last;
    for (const Interval& interval : intervals_of({*range}, kNow, kNow + hours(24 * 400))) {
      need(last < interval.from && interval.from < interval.until);
      last = interval.until;
    }
  }
  return 0;
}

}  // namespace

}  // namespace bmgpu::wire

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  return bmgpu::wire::run_one({reinterpret_cast<const char*>(data), size});
}
