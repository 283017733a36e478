#include "agent/gpu/health.h"

#include <algorithm>
#include <array>

namespace bmgpu::agent {
namespace {

constexpr int kUnreadScore = 50;
constexpr int kWarmMarginC = 15;  // below this distance from the slowdown threshold it costs
constexpr int kWarmScoreMin = 40;

// XIDs of the classes "reset", "reboot" and "hardware"; in order.
constexpr std::array<std::uint16_t, 23> kFatalXids = {46,  48,  54,  62,  64,  74,  79,  95,
                                                      110, 119, 120, 136, 140, 143, 155, 156,
                                                      157, 158, 165, 167, 168, 169, 173};

HealthPart gate(std::string name, std::string detail) {
  return HealthPart{std::move(name), 0, true, std::move(detail)};
}

HealthPart device_part(const HealthInputs& inputs) {
  return inputs.device == GpuFault::None ? HealthPart{"device", 100, false, ""}
                                         : gate("device", inputs.device_detail);
}

HealthPart memory_part(const GpuTelemetry& telemetry) {
  if (telemetry.row_remap_failed.value().value_or(false)) {
    return gate("memory", "a row of its memory could not be remapped: replace the card");
  }
  if (telemetry.row_remap_pending.value().value_or(false)) {
    return gate("memory", "a row remap waits for a reset of the GPU");
  }
  if (telemetry.ecc_uncorrected.value().value_or(0) > 0) {
    return gate("memory", "uncorrected memory errors since the driver was loaded: reset the GPU");
  }
  const bool unread =
      telemetry.row_remap_failed.is_failed() || telemetry.ecc_uncorrected.is_failed();
  return unread ? HealthPart{"memory", kUnreadScore, false, "its error counters cannot be read"}
                : HealthPart{"memory", 100, false, ""};
}

HealthPart temperature_part(const GpuTelemetry& telemetry) {
  if (telemetry.temperature_c.is_failed()) {
    return HealthPart{"temperature", kUnreadScore, false, "its temperature cannot be read"};
  }
  const std::optional<std::int32_t> celsius = telemetry.temperature_c.value();
  const std::optional<std::int32_t> slowdown = telemetry.slowdown_c.value();
  if (!celsius || !slowdown || *slowdown <= 0) {
    return HealthPart{"temperature", 100, false, ""};
  }
  const int margin = *slowdown - *celsius;
  if (margin <= 0) {
    return gate("temperature",
                "it is at its slowdown threshold of " + std::to_string(*slowdown) + " C: cool it");
  }
  if (margin >= kWarmMarginC) {
    return HealthPart{"temperature", 100, false, ""};
  }
  const int score = kWarmScoreMin + margin * (100 - kWarmScoreMin) / kWarmMarginC;
  return HealthPart{
      "temperature", score, false,
      "less than 15 C below its slowdown threshold of " + std::to_string(*slowdown) + " C"};
}

HealthPart events_part(const HealthInputs& inputs) {
  return inputs.fatal_xid
             ? gate("events", "the driver reported XID " + std::to_string(*inputs.fatal_xid) +
                                  ": reset the GPU or the node")
             : HealthPart{"events", 100, false, ""};
}

}  // namespace

bool xid_is_fatal(std::uint64_t xid) {
  return std::binary_search(kFatalXids.begin(), kFatalXids.end(), xid);
}

void judge(const HealthInputs& inputs, GpuState& gpu) {
  // Order of the gates: what the driver says of the device explains the others.
  const std::array<GpuFault, 4> faults = {inputs.device, GpuFault::Xid, GpuFault::Memory,
                                          GpuFault::Hot};
  gpu.parts = {device_part(inputs), events_part(inputs), memory_part(inputs.telemetry),
               temperature_part(inputs.telemetry)};
  gpu.fault = GpuFault::None;
  gpu.detail.clear();
  gpu.health = 100;
  for (std::size_t i = 0; i < gpu.parts.size(); ++i) {
    const HealthPart& part = gpu.parts[i];
    gpu.health = std::min(gpu.health, part.gate ? 0 : part.score);
    if (part.gate && gpu.fault == GpuFault::None) {
      gpu.fault = faults[i];
      gpu.detail = part.detail;
    }
  }
}

}  // namespace bmgpu::agent
