#include "agent/node_report.h"

#include <algorithm>

#include "bmgpu/v1/agent.pb.h"

namespace bmgpu::agent {
namespace {

const char* form_word(GpuForm form) {
  switch (form) {
    case GpuForm::Pcie:
      return "PCIe";
    case GpuForm::Sxm:
      return "SXM";
    case GpuForm::Unknown:
      break;
  }
  return "unknown";
}

void set_condition(const GpuState& gpu, v1::GpuCondition& condition) {
  condition.set_ok(gpu.fault == GpuFault::None);
  if (gpu.fault != GpuFault::None) {
    condition.set_fault(fault_word(gpu.fault));
  }
  condition.set_health(static_cast<std::uint32_t>(std::clamp(gpu.health, 0, 100)));
}

}  // namespace

v1::Inventory make_inventory(const GpuView& view, const NodeFacts& facts) {
  v1::Inventory inventory;
  for (const GpuState& gpu : view.gpus) {
    v1::InventoryGpu& item = *inventory.add_gpus();
    item.set_uuid(gpu.identity.uuid);
    item.set_pci_bus_id(gpu.identity.pci_bus_id);
    item.set_serial(gpu.identity.serial);
    item.set_model(gpu.identity.model);
    item.set_form(form_word(gpu.identity.form));
    item.set_memory_mib(gpu.identity.memory_mib);
    item.set_minor(static_cast<std::uint32_t>(gpu.identity.minor));
    set_condition(gpu, *item.mutable_condition());
  }
  inventory.set_cpu_millis(facts.share.cpu_millis);
  inventory.set_memory_mib(facts.share.memory_mib);
  inventory.set_scratch_mib(facts.share.scratch_mib);
  inventory.set_driver_version(view.driver_version);
  inventory.set_simulated_driver(view.simulated);
  for (const NodeGate& gate : facts.gates) {
    v1::Gate& item = *inventory.add_gates();
    item.set_name(gate.name);
    item.set_open(gate.open);
    item.set_detail(gate.detail);
  }
  inventory.set_runtime(facts.runtime);
  for (const std::string& image : facts.images) {
    inventory.add_images(image);
  }
  return inventory;
}

bool gpu_is_clean(const GpuState& gpu, const GpuUse& use) {
  const auto released = use.released_ms.find(gpu.identity.uuid);
  const std::int64_t since = released == use.released_ms.end() ? 1 : released->second;
  const GpuTelemetry& telemetry = gpu.telemetry;
  if (use.held.contains(gpu.identity.uuid) || gpu.fault != GpuFault::None ||
      telemetry.taken_boottime_ms < since) {
    return false;
  }
  const std::optional<std::int32_t> processes = telemetry.processes.value();
  const std::optional<std::int64_t> used_mib = telemetry.memory_used_mib.value();
  const std::int64_t idle_mib = std::max(kIdleMemoryMib, gpu.identity.memory_mib / 100);
  return processes && *processes == 0 && used_mib && *used_mib <= idle_mib;
}

v1::GpuReport make_gpu_report(const GpuView& view, const GpuUse& use) {
  v1::GpuReport report;
  for (const GpuState& gpu : view.gpus) {
    v1::GpuReading& reading = *report.add_gpus();
    reading.set_uuid(gpu.identity.uuid);
    reading.set_clean(gpu_is_clean(gpu, use));
    v1::GpuCondition& condition = *reading.mutable_condition();
    set_condition(gpu, condition);
    if (const auto temperature = gpu.telemetry.temperature_c.value()) {
      condition.set_temperature_c(*temperature);
    }
    if (const auto power = gpu.telemetry.power_mw.value()) {
      condition.set_power_mw(*power);
    }
    if (const auto used = gpu.telemetry.memory_used_mib.value()) {
      condition.set_memory_used_mib(*used);
    }
  }
  return report;
}

}  // namespace bmgpu::agent
