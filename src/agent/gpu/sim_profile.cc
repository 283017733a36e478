#include "agent/gpu/sim_profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>

#include "agent/gpu/nvml_table.h"
#include "agent/host/durable_file.h"
#include "base/nearest.h"
#include "wire/yaml_config.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kGpusMax = 64;
constexpr std::size_t kListMax = 256;
constexpr std::int64_t kMinorMax = 254;  // 255 is nvidiactl
constexpr std::int64_t kMemoryMax = std::int64_t{1} << 30;
constexpr std::int64_t kNumberMax = std::int64_t{1} << 31;

struct IntegerKey {
  const char* key;
  std::int64_t SimGpu::*member;
  std::int64_t min;
  std::int64_t max;
};
constexpr std::array<IntegerKey, 21> kIntegers = {{
    {"minor", &SimGpu::minor, -1, kMinorMax},
    {"memory_mib", &SimGpu::memory_mib, 0, kMemoryMax},
    {"memory_reserved_mib", &SimGpu::memory_reserved_mib, 0, kMemoryMax},
    {"memory_used_mib", &SimGpu::memory_used_mib, 0, kMemoryMax},
    {"temperature", &SimGpu::temperature, 0, 150},
    {"temperature_slowdown", &SimGpu::temperature_slowdown, 0, 150},
    {"temperature_shutdown", &SimGpu::temperature_shutdown, 0, 150},
    {"power_mw", &SimGpu::power_mw, 0, 5'000'000},
    {"power_limit_mw", &SimGpu::power_limit_mw, 0, 5'000'000},
    {"energy_mj", &SimGpu::energy_mj, 0, std::int64_t{1} << 50},
    {"utilization", &SimGpu::utilization, 0, 100},
    {"memory_utilization", &SimGpu::memory_utilization, 0, 100},
    {"sm_clock_mhz", &SimGpu::sm_clock_mhz, 0, 10'000},
    {"sm_clock_max_mhz", &SimGpu::sm_clock_max_mhz, 0, 10'000},
    {"memory_clock_mhz", &SimGpu::memory_clock_mhz, 0, 100'000},
    {"clock_reasons", &SimGpu::clock_reasons, 0, kNumberMax},
    {"ecc_corrected", &SimGpu::ecc_corrected, 0, kNumberMax},
    {"ecc_uncorrected", &SimGpu::ecc_uncorrected, 0, kNumberMax},
    {"rows_remapped_corrected", &SimGpu::rows_remapped_corrected, 0, 100'000},
    {"rows_remapped_uncorrected", &SimGpu::rows_remapped_uncorrected, 0, 100'000},
    {"delay_ms", &SimGpu::delay_ms, 0, 600'000},
}};
constexpr std::int64_t kStrides[] = {16, 24, 32};

const std::vector<std::string>& fault_words() {
  static const std::vector<std::string> words = {"none",   "lost",    "reset_required", "hang",
                                                 "denied", "blocked", "unknown",        "garbage",
                                                 "gone",   "crash"};
  return words;
}
const std::vector<std::string>& init_words() {
  static const std::vector<std::string> words = {
      "none", "hang", "not_loaded", "version_mismatch", "denied", "unknown"};
  return words;
}
const std::vector<std::string>& mig_words() {
  static const std::vector<std::string> words = {"unsupported", "off", "on"};
  return words;
}
const std::vector<std::string>& function_names() {
#define BMGPU_NVML_NAME(member, symbol, ...) symbol,
  static const std::vector<std::string> names = {BMGPU_NVML_FUNCTIONS(BMGPU_NVML_NAME)};
#undef BMGPU_NVML_NAME
  return names;
}

template <typename Enum>
void read_choice(wire::YamlSection& section, std::string_view key,
                 const std::vector<std::string>& words, Enum& value) {
  std::size_t index = static_cast<std::size_t>(value);
  section.choice(key, words, index);
  value = static_cast<Enum>(index);
}

void read_gpu(wire::YamlSection section, SimGpu& gpu) {
  section.text("model", gpu.model);
  section.text("uuid", gpu.uuid);
  section.text("serial", gpu.serial);
  for (const IntegerKey& field : kIntegers) {
    section.integer(field.key, gpu.*field.member, field.min, field.max);
  }
  section.boolean("row_remap_pending", gpu.row_remap_pending);
  section.boolean("row_remap_failed", gpu.row_remap_failed);
  read_choice(section, "mig", mig_words(), gpu.mig);
  read_choice(section, "fault", fault_words(), gpu.fault);
  std::vector<std::string> xids;
  section.text_list("xids", xids);
  if (section.has("xids")) {
    gpu.xids.clear();
  }
  for (const std::string& word : xids) {
    std::int64_t xid = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), xid);
    if (code != std::errc() || end != word.data() + word.size() || xid < 1 || xid > 100'000) {
      section.reject("xids", "'" + word + "' is not an XID (1 to 100000)");
    }
    gpu.xids.push_back(xid);
  }
  if (section.has("processes")) {
    gpu.processes.clear();
  }
  for (wire::YamlSection& entry : section.section_list("processes")) {
    SimProcess process;
    entry.integer("pid", process.pid, 1, std::int64_t{1} << 22);
    entry.integer("memory_mib", process.memory_mib, 0, kMemoryMax);
    gpu.processes.push_back(process);
  }
}

void read_functions(wire::YamlSection& root, std::string_view key,
                    std::vector<std::string>& value) {
  root.text_list(key, value);
  for (const std::string& name : value) {
    const std::vector<std::string>& known = function_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string close = nearest(name, known);
      root.reject(key, "unknown function '" + name + "'" +
                           (close.empty() ? "" : "; did you mean " + close + "?"));
    }
  }
}

void read_profile(wire::YamlSection root, SimProfile& profile) {
  root.text("driver_version", profile.driver_version);
  root.text("library_version", profile.library_version);
  root.integer("cuda_version", profile.cuda_version, 0, 1'000'000);
  root.integer("seed", profile.seed, 0, std::int64_t{1} << 53);
  root.integer("minor_base", profile.minor_base, 0, kMinorMax);
  root.integer("process_stride", profile.process_stride, 16, 32);
  read_choice(root, "init", init_words(), profile.init);
  root.boolean("events_failing", profile.events_failing);
  read_functions(root, "absent", profile.absent);
  read_functions(root, "unsupported", profile.unsupported);
  read_gpu(root.section("defaults"), profile.defaults);
  for (wire::YamlSection& entry : root.section_list("gpus")) {
    SimGpu gpu = profile.defaults;
    read_gpu(entry, gpu);
    profile.gpus.push_back(std::move(gpu));
  }
}

bool printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::optional<std::string> gpu_mistake(const SimProfile& profile, std::size_t index) {
  const SimGpu& gpu = profile.gpus[index];
  if (gpu.model.empty() || gpu.model.size() >= nvml::kNameBytes) {
    return "model must have 1 to 95 bytes";
  }
  if (!printable(gpu.model) || !printable(gpu.uuid) || !printable(gpu.serial)) {
    return "model, uuid and serial must be printable ASCII";
  }
  if (gpu.uuid.size() >= nvml::kUuidBytes || gpu.serial.size() >= nvml::kSerialBytes) {
    return "uuid may have 95 bytes, serial 29";
  }
  if (gpu.memory_mib == 0 || gpu.memory_used_mib + gpu.memory_reserved_mib > gpu.memory_mib) {
    return "memory_mib must be positive and hold memory_used_mib and memory_reserved_mib";
  }
  if (sim_minor(profile, index) > kMinorMax) {
    return "its minor number is beyond 254: choose a smaller minor_base";
  }
  if (gpu.xids.size() > kListMax || gpu.processes.size() > kListMax) {
    return "more than 256 xids or processes";
  }
  return std::nullopt;
}

Result<void> check_profile(const SimProfile& profile, const std::string& file) {
  const auto wrong = [&](const std::string& why) {
    return Error{ErrorCode::InvalidArgument, file + ": " + why};
  };
  if (profile.driver_version.empty() || profile.driver_version.size() > 60 ||
      !printable(profile.driver_version) || !printable(profile.library_version) ||
      profile.library_version.size() >= nvml::kVersionBytes) {
    return wrong("driver_version must have 1 to 60 bytes, library_version at most 79");
  }
  if (std::find(std::begin(kStrides), std::end(kStrides), profile.process_stride) ==
      std::end(kStrides)) {
    return wrong("process_stride must be 16, 24 or 32");
  }
  if (profile.gpus.size() > kGpusMax) {
    return wrong("more than 64 gpus");
  }
  std::set<std::string> uuids;
  std::set<std::int32_t> minors;
  for (std::size_t index = 0; index < profile.gpus.size(); ++index) {
    const std::string name = "gpus[" + std::to_string(index) + "]: ";
    if (const std::optional<std::string> mistake = gpu_mistake(profile, index)) {
      return wrong(name + *mistake);
    }
    if (!uuids.insert(sim_uuid(profile, index)).second ||
        !minors.insert(sim_minor(profile, index)).second) {
      return wrong(name + "an earlier GPU has the same uuid or minor");
    }
  }
  return {};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

template <typename List, typename Text>
std::string flow_list(const List& list, Text text) {
  std::string out = "[";
  for (const auto& item : list) {
    out += (out.size() > 1 ? ", " : "") + text(item);
  }
  return out + "]";
}

// "key: value" of everything in which `gpu` differs from `base`.
std::vector<std::string> gpu_keys(const SimGpu& gpu, const SimGpu& base) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key, const std::string& value) {
    keys.push_back(key + ": " + value);
  };
  for (const auto& [key, member] :
       {std::pair{"model", &SimGpu::model}, {"uuid", &SimGpu::uuid}, {"serial", &SimGpu::serial}}) {
    if (gpu.*member != base.*member) {
      add(key, quoted(gpu.*member));
    }
  }
  for (const IntegerKey& field : kIntegers) {
    if (gpu.*field.member != base.*field.member) {
      add(field.key, std::to_string(gpu.*field.member));
    }
  }
  for (const auto& [key, member] : {std::pair{"row_remap_pending", &SimGpu::row_remap_pending},
                                    {"row_remap_failed", &SimGpu::row_remap_failed}}) {
    if (gpu.*member != base.*member) {
      add(key, gpu.*member ? "true" : "false");
    }
  }
  if (gpu.mig != base.mig) {
    add("mig", quoted(mig_words()[static_cast<std::size_t>(gpu.mig)]));
  }
  if (gpu.fault != base.fault) {
    add("fault", fault_words()[static_cast<std::size_t>(gpu.fault)]);
  }
  if (gpu.xids != base.xids) {
    add("xids", flow_list(gpu.xids, [](std::int64_t xid) { return std::to_string(xid); }));
  }
  if (gpu.processes != base.processes) {
    add("processes", flow_list(gpu.processes, [](const SimProcess& process) {
          return "{pid: " + std::to_string(process.pid) +
                 ", memory_mib: " + std::to_string(process.memory_mib) + "}";
        }));
  }
  return keys;
}

// A well-mixed 64-bit number of (seed, index, salt): splitmix64's finaliser.
std::uint64_t mixed(const SimProfile& profile, std::size_t index, std::uint64_t salt) {
  std::uint64_t x = static_cast<std::uint64_t>(profile.seed) * 0x9E3779B97F4A7C15ull +
                    (index + 1) * 0xD1B54A32D192ED03ull + salt * 0x8CB92BA72F3D8DD7ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

Result<SimProfile> load_sim_profile(const std::string& file) {
  Result<wire::YamlConfig> yaml = wire::YamlConfig::load(file);
  if (!yaml) {
    return yaml.error();
  }
  SimProfile profile;
  read_profile(yaml->root(), profile);
  if (Result<void> read = yaml->finish(); !read) {
    return read.error();
  }
  if (Result<void> checked = check_profile(profile, file); !checked) {
    return checked.error();
  }
  return profile;
}

std::string sim_profile_text(const SimProfile& profile) {
  static const SimProfile plain;
  const auto text = [](const std::string& word) { return word; };
  std::string out =
      "# A simulated NVIDIA driver for libnvml-sim.so; see docs/reference/nvml-sim.md.\n";
  out += "driver_version: " + quoted(profile.driver_version) + "\n";
  out += "library_version: " + quoted(profile.library_version) + "\n";
  out += "cuda_version: " + std::to_string(profile.cuda_version) + "\n";
  out += "seed: " + std::to_string(profile.seed) + "\n";
  out += "minor_base: " + std::to_string(profile.minor_base) + "\n";
  out += "process_stride: " + std::to_string(profile.process_stride) + "\n";
  out += "init: " + init_words()[static_cast<std::size_t>(profile.init)] + "\n";
  out += std::string("events_failing: ") + (profile.events_failing ? "true" : "false") + "\n";
  out += "absent: " + flow_list(profile.absent, text) + "\n";
  out += "unsupported: " + flow_list(profile.unsupported, text) + "\n";
  const std::vector<std::string> defaults = gpu_keys(profile.defaults, plain.defaults);
  out += defaults.empty() ? "defaults: {}\n" : "defaults:\n";
  for (const std::string& key : defaults) {
    out += "  " + key + "\n";
  }
  out += profile.gpus.empty() ? "gpus: []\n" : "gpus:\n";
  for (const SimGpu& gpu : profile.gpus) {
    std::string keys;
    for (const std::string& key : gpu_keys(gpu, profile.defaults)) {
      keys += (keys.empty() ? "" : ", ") + key;
    }
    out += "  - {" + keys + "}\n";
  }
  return out;
}

Result<void> save_sim_profile(const std::string& file, const SimProfile& profile) {
  if (Result<void> checked = check_profile(profile, file); !checked) {
    return checked;
  }
  return replace_file(file, sim_profile_text(profile));
}

Result<void> edit_sim_profile(const std::string& file,
                              const std::function<void(SimProfile&)>& edit) {
  Result<SimProfile> profile = load_sim_profile(file);
  if (!profile) {
    return profile.error();
  }
  edit(*profile);
  return save_sim_profile(file, *profile);
}

std::string sim_uuid(const SimProfile& profile, std::size_t index) {
  if (!profile.gpus[index].uuid.empty()) {
    return profile.gpus[index].uuid;
  }
  const std::uint64_t a = mixed(profile, index, 1);
  const std::uint64_t b = mixed(profile, index, 2);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "GPU-%08x-%04x-%04x-%04x-%012llx",
                static_cast<unsigned>(a >> 32), static_cast<unsigned>(a >> 16 & 0xFFFF),
                static_cast<unsigned>(a & 0xFFFF), static_cast<unsigned>(b >> 48),
                static_cast<unsigned long long>(b & 0xFFFFFFFFFFFFull));
  return text.data();
}

std::string sim_serial(const SimProfile& profile, std::size_t index) {
  if (!profile.gpus[index].serial.empty()) {
    return profile.gpus[index].serial;
  }
  return std::to_string(1'000'000'000'000ull + mixed(profile, index, 3) % 9'000'000'000'000ull);
}

std::int32_t sim_minor(const SimProfile& profile, std::size_t index) {
  const std::int64_t own = profile.gpus[index].minor;
  return static_cast<std::int32_t>(
      own >= 0 ? own : profile.minor_base + static_cast<std::int64_t>(index));
}

}  // namespace bmgpu::agent
