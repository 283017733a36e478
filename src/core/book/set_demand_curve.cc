#include "core/handlers.h"

namespace bmgpu::core {

Decision handle(const State& state, const Stamp& stamp, const SetDemandCurve& command) {
  const PoolKey key{command.gpu_class, command.site};
  if (!state.pools.contains(key)) {
    return refused(ReasonCode::NoSuchObject, "there is no such GPU class at that site");
  }
  const SlotNumber now = slot_of(stamp.now);
  const SlotNumber end = now + SlotNumber(Limits::kBookSlots);
  const auto slots = std::ssize(command.gpus);
  if (slots > Limits::kBookSlots || command.first < now - SlotNumber(Limits::kBookSlots) ||
      command.first > end) {
    return refused(ReasonCode::OutOfRange, "a demand curve has at most " +
                                               std::to_string(Limits::kBookSlots) +
                                               " slots and begins at most 14 days from now");
  }
  for (const std::int64_t gpus : command.gpus) {
    if (gpus < 0 || gpus > Limits::kCurveGpusMax) {
      return refused(ReasonCode::OutOfRange, "an expected demand is 0 to " +
                                                 std::to_string(Limits::kCurveGpusMax) +
                                                 " GPUs, not " + std::to_string(gpus));
    }
  }
  DemandCurveSet event{command.gpu_class, command.site, command.first, command.gpus};
  const auto known = state.curves.find(key);
  const bool is_so = known == state.curves.end() ? event.gpus.empty() : known->second == event;
  return is_so ? done() : done(std::move(event));
}

}  // namespace bmgpu::core
