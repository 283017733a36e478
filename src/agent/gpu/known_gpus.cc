#include "agent/gpu/known_gpus.h"

#include <algorithm>

#include "agent/host/durable_file.h"
#include "wire/yaml_config.h"

namespace bmgpu::agent {
namespace {

// What a driver calls a part, without what would need an escape in the file.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  return out + "\"";
}

const std::vector<std::string>& form_words() {
  static const std::vector<std::string> words = {"unknown", "pcie", "sxm"};
  return words;
}

}  // namespace

Result<std::vector<GpuIdentity>> load_known_gpus(const std::string& file) {
  Result<wire::YamlConfig> yaml = wire::YamlConfig::load(file);
  if (!yaml) {
    return yaml.error();
  }
  std::vector<GpuIdentity> gpus;
  wire::YamlSection root = yaml->root();
  for (wire::YamlSection& entry : root.section_list("gpus")) {
    GpuIdentity gpu;
    std::int64_t minor = 0;
    std::size_t form = 0;
    entry.text("uuid", gpu.uuid);
    entry.text("pci_bus_id", gpu.pci_bus_id);
    entry.text("serial", gpu.serial);
    entry.text("model", gpu.model);
    entry.choice("form", form_words(), form);
    entry.integer("memory_mib", gpu.memory_mib, 0, std::int64_t{1} << 40);
    entry.integer("minor", minor, 0, 1 << 20);
    gpu.form = static_cast<GpuForm>(form);
    gpu.minor = static_cast<std::int32_t>(minor);
    gpus.push_back(std::move(gpu));
  }
  if (Result<void> read = yaml->finish(); !read) {
    return read.error();
  }
  return gpus;
}

Result<void> save_known_gpus(const std::string& file, const std::vector<GpuIdentity>& gpus) {
  std::string text = "# GPUs that this node has had. Remove the file to forget a card taken out.\n";
  text += gpus.empty() ? "gpus: []\n" : "gpus:\n";
  for (const GpuIdentity& gpu : gpus) {
    text += "  - {uuid: " + quoted(gpu.uuid) + ", pci_bus_id: " + quoted(gpu.pci_bus_id) +
            ", serial: " + quoted(gpu.serial) + ", model: " + quoted(gpu.model) +
            ", form: " + form_words()[static_cast<std::size_t>(gpu.form)] +
            ", memory_mib: " + std::to_string(gpu.memory_mib) +
            ", minor: " + std::to_string(gpu.minor) + "}\n";
  }
  return replace_file(file, text);
}

}  // namespace bmgpu::agent
