#include "agent/runtime/runtime.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <mutex>
#include <utility>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/container.h"
#include "agent/runtime/detach.h"
#include "agent/runtime/files.h"
#include "agent/runtime/network.h"
#include "agent/runtime/podman.h"
#include "agent/runtime/probe.h"
#include "agent/runtime/scratch.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"
#include "base/digest.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

constexpr std::chrono::seconds kServiceDeadline{15};
constexpr std::chrono::seconds kRemoveDeadline{20};
constexpr std::chrono::seconds kKillDeadline{5};
constexpr std::chrono::seconds kDoctorDeadline{20};
// 10 s: as long as the engine takes to give up on a clean-up of its own.
constexpr int kRemoveTries = 200;
constexpr int kRemovePauseMs = 50;

std::string text_of(std::uint64_t value, int digits) {
  std::string out;
  for (int i = 0; i < digits; ++i) {
    out += "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  }
  return out;
}

std::string beside_this_program(const char* name) {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + name;
}

template <typename Number>
Number number_of(const std::map<std::string, std::string>& labels, const char* name) {
  Number value = 0;
  const auto found = labels.find(name);
  if (found != labels.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

class PodmanRuntime final : public Runtime {
 public:
  PodmanRuntime(RuntimeOptions options, v1::RuntimeFacts facts)
      : options_(std::move(options)), facts_(std::move(facts)) {}

  Result<void> begin();

  v1::RuntimeFacts facts() const override {
    const std::lock_guard lock(facts_mutex_);
    return facts_;
  }
  std::string summary() const override {
    const v1::RuntimeFacts now = facts();
    return "podman " + now.podman_version() + " " + now.oci_runtime() + " " + now.oci_version() +
           " cgroup-" + now.cgroup();
  }
  std::string socket() const override { return service_socket(facts()); }

  Result<void> canary(std::chrono::milliseconds deadline) override;
  Result<std::vector<std::string>> images() override {
    const Result<Podman> engine = podman();
    return engine.ok() ? engine->images() : Result<std::vector<std::string>>(engine.error());
  }
  Result<std::vector<ContainerInfo>> containers() override;
  Result<void> remove_orphan(const ContainerInfo& container) override {
    const Result<Podman> engine = podman();
    return engine.ok() ? destroy_container(facts(), *engine, container.id, kRemoveDeadline)
                       : Result<void>(engine.error());
  }
  v1::ShimOrder order(const v1::AttemptSpec& spec,
                      const std::vector<DeviceGrant>& devices) const override;
  Result<void> refill_scratch(const std::vector<std::int64_t>& sizes_mib, int count) override {
    const std::lock_guard lock(pool_mutex_);
    return refill_scratch_pool(pool_dir(), sizes_mib, count);
  }
  std::vector<DoctorCheck> doctor() override;
  Result<void> remove_all() override;

 private:
  // With its service running.
  Result<Podman> podman() const;
  std::string facts_path() const { return options_.state_dir + "/runtime.json"; }
  std::string pool_dir() const { return options_.state_dir + "/scratch-pool"; }
  bool remembered();
  Result<void> probe();
  Result<void> forget_other_boot();

  const RuntimeOptions options_;
  v1::RuntimeFacts facts_;
  mutable std::mutex facts_mutex_;
  std::mutex probe_mutex_;  // taken before facts_mutex_
  std::mutex pool_mutex_;
};

Result<Podman> PodmanRuntime::podman() const {
  const v1::RuntimeFacts now = facts();
  if (Result<void> service = ensure_service(now, kServiceDeadline); !service.ok()) {
    return service.error();
  }
  return Podman(service_socket(now));
}

// What the findings of a probe depend on.
std::string basis(const v1::RuntimeFacts& facts) {
  std::string text = facts.boot_id() + "\n" + facts.root() + "\n" + facts.run_dir() + "\n" +
                     facts.init_path() + "\n";
  for (const std::string& store : facts.image_stores()) {
    text += store + "\n";
  }
  return text;
}

// Takes what an earlier start found out, if nothing that it depends on changed since.
bool PodmanRuntime::remembered() {
  const Result<std::string> text = read_file(facts_path());
  v1::RuntimeFacts old;
  if (!text.ok() || !google::protobuf::util::JsonStringToMessage(*text, &old).ok() ||
      basis(old) != basis(facts_) || old.oci_runtime().empty() ||
      (options_.oci_runtime != "auto" && options_.oci_runtime != old.oci_runtime())) {
    return false;
  }
  const Result<std::string> podman = find_program(options_.podman);
  if (!podman.ok() || *podman != old.podman()) {
    return false;
  }
  facts_ = old;
  return true;
}

Result<void> PodmanRuntime::probe() {
  const std::lock_guard lock(probe_mutex_);
  v1::RuntimeFacts found = facts();
  if (!found.oci_runtime().empty()) {
    return {};
  }
  Result<void> probed = probe_runtime(found, options_.podman, options_.oci_runtime,
                                      options_.nat_subnet, options_.state_dir);
  if (!probed.ok()) {
    return probed;
  }
  {
    const std::lock_guard facts_lock(facts_mutex_);
    facts_ = found;
  }
  google::protobuf::util::JsonPrintOptions pretty;
  pretty.add_whitespace = true;
  pretty.preserve_proto_field_names = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(found, &text, pretty);
  check(printed.ok(), "runtime facts are always JSON");
  return write_file(facts_path(), text, 0644);
}

// Engines revive containers, and a deadline of another boot means nothing: all of ours goes.
Result<void> PodmanRuntime::forget_other_boot() {
  const Result<std::string> text = read_file(facts_path());
  v1::RuntimeFacts old;
  if (!text.ok() || !google::protobuf::util::JsonStringToMessage(*text, &old).ok() ||
      old.boot_id() == facts_.boot_id()) {
    return {};
  }
  if (Result<void> removed = remove_tree(old.run_dir()); !removed.ok()) {
    return removed;
  }
  return remove_tree(facts_path());
}

Result<void> PodmanRuntime::begin() {
  if (::geteuid() != 0) {
    return Error{ErrorCode::PermissionDenied,
                 "containers with devices, mounts and networks need root; run the agent as root"};
  }
  for (const std::string& dir : {options_.state_dir, options_.state_dir + "/attempts",
                                 options_.state_dir + "/blobs", facts_.root(), pool_dir()}) {
    if (Result<void> made = make_dirs(dir); !made.ok()) {
      return made;
    }
  }
  remove_temporary_files(options_.state_dir);
  for (const AttemptName& name : list_attempts(options_.state_dir)) {
    remove_temporary_files(AttemptDir(options_.state_dir, name).path());
  }
  const bool other_boot = [&] {
    const Result<std::string> text = read_file(facts_path());
    return text.ok() && text->find(facts_.boot_id()) == std::string::npos;
  }();
  if (Result<void> forgotten = forget_other_boot(); !forgotten.ok()) {
    return forgotten;
  }
  // What does not work now is what canary() and doctor() tell; the agent runs on without jobs.
  if (remembered()) {
    (void)ensure_nat(options_.nat_subnet).ok();
    (void)ensure_service(facts_, kServiceDeadline).ok();
  } else {
    (void)probe().ok();
  }
  if (other_boot) {
    Result<std::vector<ContainerInfo>> old = containers();
    for (const ContainerInfo& container : old.ok() ? *old : std::vector<ContainerInfo>()) {
      (void)remove_orphan(container).ok();
    }
  }
  return {};
}

Result<void> PodmanRuntime::canary(std::chrono::milliseconds deadline) {
  if (Result<void> probed = probe(); !probed.ok()) {
    return probed;
  }
  return run_canary(facts(), options_.state_dir, deadline);
}

Result<std::vector<ContainerInfo>> PodmanRuntime::containers() {
  const Result<Podman> engine = podman();
  if (!engine.ok()) {
    return engine.error();
  }
  remove_stale_canaries(facts());
  Result<std::vector<ContainerSummary>> all =
      engine->list({{"io.bmgpu.market", options_.market}, {"io.bmgpu.node", options_.node}});
  if (!all.ok()) {
    return all.error();
  }
  std::vector<ContainerInfo> out;
  for (const ContainerSummary& one : *all) {
    ContainerInfo info;
    info.id = one.id;
    info.name = one.name;
    const auto lease = one.labels.find("io.bmgpu.lease");
    info.attempt.lease = lease == one.labels.end() ? "" : lease->second;
    info.attempt.rank = number_of<std::uint32_t>(one.labels, "io.bmgpu.rank");
    info.attempt.attempt = number_of<std::uint64_t>(one.labels, "io.bmgpu.attempt");
    info.incarnation = number_of<std::uint64_t>(one.labels, "io.bmgpu.incarnation");
    info.running = one.state == "running" || one.state == "paused";
    out.push_back(std::move(info));
  }
  return out;
}

v1::ShimOrder PodmanRuntime::order(const v1::AttemptSpec& spec,
                                   const std::vector<DeviceGrant>& devices) const {
  v1::ShimOrder order;
  *order.mutable_spec() = spec;
  *order.mutable_runtime() = facts();
  order.set_market(options_.market);
  order.set_node(options_.node);
  order.set_boot_id(order.runtime().boot_id());
  order.set_blob_dir(options_.state_dir + "/blobs");
  order.set_scratch_pool(pool_dir());
  order.set_nat_subnet(options_.nat_subnet);
  for (const DeviceGrant& grant : devices) {
    v1::ShimOrder::Device* device = order.add_devices();
    device->set_uuid(grant.uuid);
    device->set_cdi_name(grant.cdi_name);
    device->set_minor(grant.minor);
  }
  return order;
}

DoctorCheck line(const char* name, const Result<void>& outcome, const std::string& detail,
                 const std::string& advice) {
  if (outcome.ok()) {
    return {name, true, detail, ""};
  }
  return {name, false, outcome.error().message, advice};
}

std::vector<DoctorCheck> PodmanRuntime::doctor() {
  std::vector<DoctorCheck> lines;
  const Result<void> works = canary(kDoctorDeadline);
  const v1::RuntimeFacts now = facts();
  lines.push_back(
      line("container engine", works, summary() + ": a test container ran",
           "see podman.log in " + now.run_dir() + "; install podman with runc or crun"));
  const Result<void> cgroups =
      now.cgroup().empty() ? Result<void>(Error{ErrorCode::Unavailable, "no cgroups are mounted"})
                           : Result<void>();
  lines.push_back(line("container cgroups", cgroups, now.cgroup(), "mount cgroup2"));
  lines.push_back(line("scratch file systems", probe_scratch(options_.state_dir),
                       "loop device and ext4 work", "load the loop module, install e2fsprogs"));
  lines.push_back({"network nat", now.nat(),
                   now.nat() ? "jobs get addresses of " + options_.nat_subnet : now.nat_detail(),
                   now.nat() ? ""
                             : "install nftables; until then only jobs with "
                               "--network none start"});
  lines.push_back({"container limits", true,
                   "open files " + std::to_string(now.nofile_max()) + ", processes " +
                       std::to_string(now.nproc_max()),
                   ""});
  for (const std::string& store : options_.image_stores) {
    const bool there = ::access((store + "/overlay-images").c_str(), R_OK) == 0;
    lines.push_back({"image store", there, store + (there ? "" : " holds no images"),
                     there ? "" : "fill it: podman --root " + store + " pull IMAGE"});
  }
  return lines;
}

Result<void> PodmanRuntime::remove_all() {
  if (Result<void> stopped = stop_service(facts_, kServiceDeadline); !stopped.ok()) {
    return stopped;
  }
  // The engine's monitors of exec sessions outlive their commands and their container for a while.
  const JobCgroup ours(cgroup_trees(), cgroup_parent(facts_));
  if (Result<void> killed = ours.kill(kKillDeadline); !killed.ok()) {
    return killed;
  }
  (void)remove_nat(options_.nat_subnet).ok();
  remove_cgroup(cgroup_parent(facts_));
  // Each container's monitor starts a clean-up command of the engine at its end. One that still
  // runs writes into these folders and mounts storage again, so they are removed until they are
  // gone.
  for (int tries = 1;; ++tries) {
    // The engine keeps its storage folder mounted on itself, and what a killed one left.
    detach_mounts_below(facts_.root());
    Result<void> removed;
    for (const std::string& dir : {facts_.run_dir(), facts_.root(), pool_dir(),
                                   options_.state_dir + "/canary", facts_path()}) {
      if (Result<void> one = remove_tree(dir); !one.ok()) {
        removed = one;
      }
    }
    if (removed.ok() || tries == kRemoveTries) {
      return removed;
    }
    ::poll(nullptr, 0, kRemovePauseMs);
  }
}

}  // namespace

std::string default_run_dir(const std::string& state_dir) {
  Digest digest;
  digest.add(state_dir);
  return "/run/bm-agent/" + text_of(digest.value(), 12);
}

Result<std::unique_ptr<Runtime>> Runtime::create(RuntimeOptions options) {
  if (options.state_dir.empty() || options.state_dir.front() != '/') {
    return Error{ErrorCode::InvalidArgument, "state_dir must be an absolute path"};
  }
  v1::RuntimeFacts facts;
  facts.set_boot_id(read_boot_id());
  facts.set_root(options.state_dir + "/containers");
  facts.set_run_dir(options.run_dir.empty() ? default_run_dir(options.state_dir) : options.run_dir);
  facts.set_init_path(options.init_path.empty() ? beside_this_program("bm-init")
                                                : options.init_path);
  for (const std::string& store : options.image_stores) {
    facts.add_image_stores(store);
  }
  auto runtime = std::make_unique<PodmanRuntime>(std::move(options), std::move(facts));
  if (Result<void> begun = runtime->begin(); !begun.ok()) {
    return begun.error();
  }
  return std::unique_ptr<Runtime>(std::move(runtime));
}

Result<void> spawn_shim(const AttemptDir& dir, const std::vector<std::string>& program) {
  Result<v1::ShimOrder> order = dir.read_order();
  if (!order.ok()) {
    return order.error();
  }
  std::vector<std::string> command = program;
  command.push_back(dir.path());
  return start_detached(command, dir.path(), dir.file("shim.log"), cgroup_parent(order->runtime()));
}

}  // namespace bmgpu::agent
