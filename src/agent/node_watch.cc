#include "agent/node_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agent/event_loop.h"
#include "agent/guard.h"
#include "agent/host/doctor.h"
#include "agent/host/facts.h"
#include "bmgpu/v1/agent.pb.h"
#include "wire/log.h"

namespace bmgpu::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEnginePeriod{5000};
constexpr milliseconds kGatePeriod{1000};
constexpr milliseconds kEngineSilenceMax{5000};
constexpr milliseconds kCanaryLimit{20'000};
constexpr milliseconds kDriverPatience{3000};
constexpr milliseconds kRefreshLimit{2000};
constexpr std::int64_t kMemoryReserveMib = 512;
constexpr std::size_t kScratchSizesMax = 4;

}  // namespace

std::string cdi_kind_of(const AgentConfig& config, const v1::NodeFile& node) {
  return config.cdi.kind.empty() ? "bmgpu.io/m" + node.market().substr(0, 8) + "-" + node.node()
                                 : config.cdi.kind;
}

std::string device_dir(const AgentConfig& config) { return config.state_dir + "/dev"; }

GpuProbeOptions probe_options(const AgentConfig& config) {
  GpuProbeOptions options;
  options.library = config.nvml.library;
  options.sim_profile = config.nvml.sim_profile;
  options.known_file = config.state_dir + "/gpus.known";
  return options;
}

RuntimeOptions runtime_options(const AgentConfig& config, const v1::NodeFile& node) {
  RuntimeOptions options;
  options.state_dir = config.state_dir;
  options.market = node.market();
  options.node = node.node();
  options.podman = config.runtime.podman;
  options.oci_runtime = config.runtime.oci_runtime;
  options.image_stores = config.runtime.image_stores;
  options.init_path = config.runtime.init_path;
  return options;
}

NodeWatch::NodeWatch(EventLoop& loop, wire::Log& log, const AgentConfig& config,
                     const v1::NodeFile& node, Callbacks callbacks)
    : loop_(loop),
      log_(log),
      config_(config),
      runtime_options_(runtime_options(config, node)),
      cdi_kind_(cdi_kind_of(config, node)),
      callbacks_(std::move(callbacks)),
      started_(Clock::now()),
      gpu_worker_(std::make_unique<WorkerPool>(1)),
      engine_(std::make_unique<WorkerPool>(1)) {}

NodeWatch::~NodeWatch() {
  engine_.reset();
  gpu_worker_.reset();
}

Result<void> NodeWatch::start() {
  find_share();
  GpuProbeOptions options = probe_options(config_);
  options.on_change = [this](const GpuView&) {
    loop_.post([this] {
      look_at_gates();
      callbacks_.on_change();
    });
  };
  Result<std::unique_ptr<GpuProbe>> probe = GpuProbe::start(std::move(options));
  if (!probe) {
    return probe.error();
  }
  probe_ = std::move(*probe);
  set_gate("runtime", false, "the container engine is being looked at");
  set_gate("cdi", false, "no GPU was seen yet");
  look_at_gates();
  create_runtime();
  loop_.every(kEnginePeriod, [this] { look_at_engine(); });
  loop_.every(kGatePeriod, [this] { look_at_gates(); });
  return {};
}

void NodeWatch::find_share() {
  share_ = {config_.share.cpu_millis, config_.share.memory_mib, config_.share.scratch_mib};
  const Result<HostFacts> host = read_host_facts();
  if (host && share_.cpu_millis == 0) {
    share_.cpu_millis = host->cpu_millis;
  }
  if (host && share_.memory_mib == 0) {
    const std::int64_t reserve = std::max(kMemoryReserveMib, host->memory_mib / 20);
    share_.memory_mib = std::max<std::int64_t>(host->memory_mib - reserve, 1);
  }
  const Result<DiskFacts> disk = read_disk_facts(config_.state_dir);
  if (disk && share_.scratch_mib == 0) {
    // What living jobs have written is theirs already: it counts as free, so that the share is the
    // same after a restart of the agent.
    std::int64_t written_mib = 0;
    for (const AttemptName& name : list_attempts(config_.state_dir)) {
      struct stat facts {};
      if (stat(AttemptDir(config_.state_dir, name).file("scratch.img").c_str(), &facts) == 0) {
        written_mib += facts.st_blocks / 2048;
      }
    }
    share_.scratch_mib = (disk->free_mib + written_mib) * 8 / 10 / 1024 * 1024;
  }
}

bool NodeWatch::gpus_known() const {
  return probe_->view().driver != DriverState::Starting ||
         Clock::now() > started_ + kDriverPatience;
}

NodeFacts NodeWatch::facts() const {
  NodeFacts facts{share_, "", images_, gates_};
  if (runtime_ready_) {
    facts.runtime = runtime_->summary();
  }
  return facts;
}

void NodeWatch::set_gate(const std::string& name, bool open, const std::string& detail) {
  const NodeGate gate{name, open, detail};
  auto at = std::find_if(gates_.begin(), gates_.end(),
                         [&name](const NodeGate& other) { return other.name == name; });
  if (at == gates_.end()) {
    at = gates_.insert(at, gate);
  } else if (*at == gate) {
    return;
  }
  if (at->open != open) {
    open ? log_.info("gate opened", {{"gate", name}, {"detail", detail}})
         : log_.warning("gate closed", {{"gate", name}, {"detail", detail}});
  }
  *at = gate;
  callbacks_.on_change();
}

// --- the container engine ---

void NodeWatch::create_runtime() {
  asked_engine_ = Clock::now();
  engine_->submit([this] {
    const auto made =
        std::make_shared<Result<std::unique_ptr<Runtime>>>(Runtime::create(runtime_options_));
    loop_.post([this, made] {
      asked_engine_.reset();
      if (!*made) {
        set_gate("runtime", false, made->error().message);
        return;  // the next round tries again
      }
      runtime_ = std::move(**made);
      look_at_engine();
    });
  });
}

void NodeWatch::look_at_engine() {
  if (asked_engine_) {
    return;  // look_at_gates() notices one that does not come back
  }
  if (runtime_ == nullptr) {
    create_runtime();
    return;
  }
  asked_engine_ = Clock::now();
  engine_->submit([this, canary = engine_failed_] {
    Result<void> works = canary ? runtime_->canary(kCanaryLimit) : Result<void>();
    std::vector<std::string> images;
    std::optional<std::vector<ContainerInfo>> containers;
    if (works) {
      Result<std::vector<ContainerInfo>> listed = runtime_->containers();
      Result<std::vector<std::string>> found = runtime_->images();
      if (!listed || !found) {
        works = listed ? found.error() : listed.error();
      } else {
        containers = std::move(*listed);
        images = std::move(*found);
      }
    }
    loop_.post([this, works, images = std::move(images), containers = std::move(containers)] {
      engine_answered(works, images, containers);
    });
  });
}

void NodeWatch::engine_answered(const Result<void>& works, std::vector<std::string> images,
                                std::optional<std::vector<ContainerInfo>> containers) {
  asked_engine_.reset();
  engine_failed_ = !works;
  if (!works) {
    set_gate("runtime", false, works.error().message);
    return;
  }
  const bool first = !runtime_ready_;
  runtime_ready_ = true;
  const bool other_images = images != images_;
  images_ = std::move(images);
  set_gate("runtime", true, runtime_->summary());
  if (first) {
    log_.info("the container engine is ready", {{"engine", runtime_->summary()}});
    refill_scratch();
  }
  if (first || other_images) {
    callbacks_.on_change();
  }
  callbacks_.on_containers(std::move(*containers));
}

void NodeWatch::remove_container(ContainerInfo container) {
  log_.warning("a stray container of ours is removed",
               {{"container", container.name}, {"id", container.id}});
  engine_->submit([this, container = std::move(container)] {
    if (const Result<void> removed = runtime_->remove_orphan(container); !removed) {
      log_.error("a stray container cannot be removed",
                 {{"container", container.name}, {"why", removed.error().message}});
    }
  });
}

void NodeWatch::refill_scratch() {
  const std::size_t gpus = devices_.size();
  if (!runtime_ready_ || gpus == 0) {
    return;
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t count = 1; count <= gpus && sizes.size() < kScratchSizesMax; count *= 2) {
    sizes.push_back(share_.scratch_mib * static_cast<std::int64_t>(count) /
                    static_cast<std::int64_t>(gpus));
  }
  engine_->submit([this, sizes = std::move(sizes)] {
    if (const Result<void> filled = runtime_->refill_scratch(sizes, 1); !filled) {
      log_.warning("no scratch file is kept ready", {{"why", filled.error().message}});
    }
  });
}

// --- GPUs ---

void NodeWatch::look_at_devices() {
  const GpuView view = probe_->view();
  std::vector<std::pair<std::string, std::int32_t>> devices;
  for (const GpuState& gpu : view.gpus) {
    devices.emplace_back(gpu.identity.uuid, gpu.identity.minor);
  }
  if (devices.empty()) {
    return;
  }
  if (devices == devices_ && devices_known_) {
    keep_devices();
    return;
  }
  CdiSpec spec;
  spec.kind = cdi_kind_;
  std::vector<std::int32_t> minors;
  for (const auto& [uuid, minor] : devices) {
    spec.devices.push_back({uuid, minor});
    minors.push_back(minor);
  }
  Result<void> ready;
  if (view.simulated) {
    spec.device_dir = device_dir(config_);
    ready = ensure_simulated_devices(spec.device_dir, minors);
  } else if (Result<CdiDriverFiles> files = find_driver_files("/", view.driver_version); files) {
    spec.driver = std::move(*files);
  } else {
    ready = files.error();
  }
  Result<std::string> written = ready ? write_cdi(config_.cdi.dir, spec) : ready.error();
  devices_known_ = written.ok();
  devices_ = std::move(devices);
  cdi_ = std::move(spec);
  set_gate("cdi", written.ok(), written ? *written : written.error().message);
}

void NodeWatch::keep_devices() {
  const Result<std::string> kept = keep_cdi(config_.cdi.dir, cdi_);
  set_gate("cdi", kept.ok(), kept ? *kept : kept.error().message);
}

Result<std::vector<DeviceGrant>> NodeWatch::grants(const std::vector<std::string>& uuids) const {
  std::vector<DeviceGrant> grants;
  for (const std::string& uuid : uuids) {
    const auto at = std::find_if(devices_.begin(), devices_.end(),
                                 [&uuid](const auto& device) { return device.first == uuid; });
    if (at == devices_.end()) {
      return Error{ErrorCode::NotFound, "this node has no GPU " + uuid};
    }
    grants.push_back(
        {uuid, cdi_device_name(cdi_kind_, uuid), static_cast<std::uint32_t>(at->second)});
  }
  return grants;
}

void NodeWatch::refresh_gpus(std::function<void()> done) {
  gpu_worker_->submit([this, done = std::move(done)] {
    probe_->refresh(kRefreshLimit);
    loop_.post(done);
  });
}

// --- the rest ---

void NodeWatch::look_at_gates() {
  look_at_devices();
  const auto now = Clock::now();
  if (asked_engine_ && now - *asked_engine_ > kEngineSilenceMax && runtime_ != nullptr) {
    engine_failed_ = true;
    set_gate("runtime", false,
             "the podman service of this node has not answered for over 5 s; look at: bm-agent "
             "doctor");
  }
  const GpuView view = probe_->view();
  const bool ready = view.driver == DriverState::Ready;
  set_gate("driver", ready,
           ready ? (view.simulated ? "simulated, " : "") + view.driver_version
                 : std::string(driver_word(view.driver)) + ": " + view.detail);
  const Result<DiskFacts> disk = read_disk_facts(config_.state_dir);
  const bool space = disk && disk->free_mib >= kDiskFreeMibMin;
  set_gate("disk", space,
           !disk   ? disk.error().message
           : space ? "at least 1 GiB free"
                   : "less than 1 GiB is free in " + config_.state_dir + "; make room");
  const bool guarded = guard_alive(config_.state_dir);
  set_gate("guard", guarded,
           guarded ? "alive" : "no guard lives; look at " + config_.state_dir + "/guard/log");
}

}  // namespace bmgpu::agent
