#include "agent/runtime/shim_job.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <utility>

#include "agent/runtime/container.h"
#include "agent/runtime/files.h"
#include "agent/runtime/job_container.h"
#include "agent/runtime/network.h"
#include "agent/runtime/scratch.h"
#include "agent/runtime/service.h"
#include "agent/runtime/workdir.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {
namespace {

using agent_core::EndCause;
using agent_core::ShimFailed;

constexpr std::int64_t kMib = 1024 * 1024;
constexpr std::chrono::seconds kServiceDeadline{15};
constexpr std::chrono::seconds kAnswerDeadline{60};
constexpr std::chrono::seconds kRemoveDeadline{30};

bool wants_nat(const v1::ShimOrder& order) {
  return order.spec().job().network() != v1::NETWORK_MODE_NONE;
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  return out;
}

// "1000", "1000:100" of an image; names would need the image's own passwd file: they own nothing.
std::pair<std::uint32_t, std::uint32_t> owner_of(const std::string& user) {
  std::uint32_t uid = 0;
  const char* const last = user.data() + user.size();
  const auto [end, error] = std::from_chars(user.data(), last, uid);
  if (error != std::errc() || (end != last && *end != ':')) {
    return {0, 0};
  }
  std::uint32_t gid = 0;
  if (end == last || std::from_chars(end + 1, last, gid).ptr != last) {
    gid = uid;
  }
  return {uid, gid};
}

std::map<std::string, std::string> environment(const v1::ShimOrder& order) {
  const v1::AttemptSpec& spec = order.spec();
  std::string uuids;
  for (const v1::ShimOrder::Device& device : order.devices()) {
    uuids += (uuids.empty() ? "" : ",") + device.uuid();
  }
  std::map<std::string, std::string> env = {{"HOME", "/scratch/home"}};
  for (const v1::EnvVar& variable : spec.job().env()) {
    env[variable.name()] = variable.value();
  }
  // After the job's own, because these are facts.
  env["BM_LEASE"] = spec.lease();
  env["BM_RANK"] = std::to_string(spec.rank());
  env["BM_ATTEMPT"] = std::to_string(spec.attempt());
  env["BM_GPUS"] = uuids;
  env["BMGPU_COUNT"] = std::to_string(order.devices_size());
  env["BM_LEASE_END"] = std::to_string(spec.lease_end_unix_ms() / 1000);
  // Devices are granted by CDI; another runtime's hook shall not add any by this variable.
  env["NVIDIA_VISIBLE_DEVICES"] = "void";
  return env;
}

Result<void> make_scratch(const v1::ShimOrder& order, const AttemptDir& dir) {
  const std::string image = dir.file("scratch.img");
  const std::int64_t size = std::max(order.spec().scratch_mib(), kScratchMibMin);
  const Result<void> taken = take_scratch(order.scratch_pool(), size, image);
  if (!taken.ok()) {
    if (Result<void> formatted = format_scratch(image, size); !formatted.ok()) {
      return formatted;
    }
  }
  return mount_scratch(image, dir.file("scratch"));
}

Result<void> fill_scratch(const v1::ShimOrder& order, const AttemptDir& dir,
                          const std::string& user) {
  const auto [uid, gid] = owner_of(user);
  for (const char* folder : kScratchFolders) {
    const std::string path = dir.file("scratch") + "/" + folder;
    if (::chown(path.c_str(), uid, gid) != 0) {
      return errno_error(path, errno);
    }
  }
  std::vector<WorkFileEntry> files;
  std::int64_t bytes = 0;
  for (const v1::WorkFile& file : order.spec().job().workdir()) {
    bytes += file.size();
    files.push_back(
        {file.path(), hex(file.sha256()), file.size(), file.mode(), file.link_target()});
  }
  // The scratch file takes disk as it is written, and its own file system does not say at once that
  // there is none left.
  struct statvfs disk = {};
  if (!files.empty() && ::statvfs(dir.path().c_str(), &disk) == 0 &&
      static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize) < bytes + kMib) {
    return Error{ErrorCode::ResourceExhausted, "the disk of " + order.node() +
                                                   " has no room for the working directory (" +
                                                   std::to_string(bytes / kMib + 1) + " MiB)"};
  }
  WorkdirOptions options;
  options.blob_dir = order.blob_dir();
  options.target = dir.file("scratch") + "/workspace";
  options.uid = uid;
  options.gid = gid;
  return lay_out_workdir(files, options);
}

ShimFailed failed(const Error& error) { return {EndCause::StartFailed, error.message}; }

Result<void> check_order(const v1::ShimOrder& order) {
  if (wants_nat(order) && !order.runtime().nat()) {
    return Error{ErrorCode::Unavailable, "this node has no network for jobs (" +
                                             order.runtime().nat_detail() +
                                             "); use --network none"};
  }
  for (const v1::ShimOrder::Device& device : order.devices()) {
    if (device.cdi_name().find('=') == std::string::npos) {
      return Error{ErrorCode::InvalidArgument, "GPU " + device.uuid() + " has no CDI name"};
    }
  }
  return {};
}

}  // namespace

std::string container_of(const v1::ShimOrder& order) {
  return container_name(order.market(),
                        {order.spec().lease(), order.spec().rank(), order.spec().attempt()});
}

ContainerSpec container_spec(const v1::ShimOrder& order, const AttemptDir& dir,
                             const ImageConfig& image) {
  const v1::AttemptSpec& job = order.spec();
  const std::string scratch = dir.file("scratch");
  ContainerSpec spec;
  spec.name = container_of(order);
  spec.image = job.job().image();
  spec.entrypoint = {"/.bm/init"};
  if (job.job().command().empty()) {
    spec.command = image.entrypoint;
    spec.command.insert(spec.command.end(), image.command.begin(), image.command.end());
  } else {
    spec.command.assign(job.job().command().begin(), job.job().command().end());
  }
  spec.env = environment(order);
  if (!spec.env.contains("CUDA_VISIBLE_DEVICES")) {
    spec.unset_env.push_back("CUDA_VISIBLE_DEVICES");
  }
  spec.labels = {{"io.bmgpu.market", order.market()},
                 {"io.bmgpu.node", order.node()},
                 {"io.bmgpu.lease", job.lease()},
                 {"io.bmgpu.rank", std::to_string(job.rank())},
                 {"io.bmgpu.attempt", std::to_string(job.attempt())},
                 {"io.bmgpu.incarnation", std::to_string(job.incarnation())}};
  spec.mounts = {{order.runtime().init_path(), "/.bm/init", true},
                 {dir.file("gate"), "/.bm/gate", true},
                 {scratch + "/data", "/scratch", false},
                 {scratch + "/tmp", "/tmp", false},
                 {scratch + "/workspace", "/workspace", false}};
  for (const v1::ShimOrder::Device& device : order.devices()) {
    spec.devices.push_back(device.cdi_name());
  }
  if (job.job().has_workdir() || job.job().workdir_size() > 0) {
    spec.working_dir = "/workspace";
  }
  spec.hostname = job.lease();
  spec.log_path = dir.log_path();
  if (wants_nat(order)) {
    spec.network_namespace = dir.file("netns");
  }
  spec.cgroup_parent = cgroup_parent(order.runtime());
  spec.cpu_millis = job.cpu_millis();
  spec.memory_bytes = job.memory_mib() * kMib;
  spec.limit_swap = order.runtime().swap_limit();
  // Shared memory counts as the job's memory, so its own bound only keeps it from being 64 MB.
  spec.shm_bytes = spec.memory_bytes / 2;
  spec.pids = job.pids();
  spec.nofile = order.runtime().nofile_max();
  spec.nproc = order.runtime().nproc_max();
  return spec;
}

std::optional<ShimFailed> start_job(const v1::ShimOrder& order, const AttemptDir& dir,
                                    Preparation& shared, const OnProgress& on_progress,
                                    Timeline& timeline) {
  if (Result<void> checked = check_order(order); !checked.ok()) {
    return failed(checked.error());
  }
  on_progress("scratch");
  // What the container's mounts begin at must be there when it is created, long before the file
  // system and the namespace that will cover it are.
  for (const char* folder : kScratchFolders) {
    if (Result<void> made = make_dirs(dir.file("scratch") + "/" + folder); !made.ok()) {
      return failed(made.error());
    }
  }
  if (wants_nat(order)) {
    if (Result<void> made = write_file(dir.file("netns"), ""); !made.ok()) {
      return failed(made.error());
    }
  }
  std::future<Result<void>> scratch = std::async(std::launch::async, [&] {
    Result<void> made = make_scratch(order, dir);
    timeline.mark("scratch");
    return made;
  });
  std::future<Result<void>> network = std::async(std::launch::async, [&]() -> Result<void> {
    Result<void> made =
        wants_nat(order) ? make_network(dir.file("netns"), order.nat_subnet()) : Result<void>();
    timeline.mark("network");
    return made;
  });
  JobContainer container(order, dir, shared, on_progress, timeline);
  const std::optional<ShimFailed> not_created = container.create();
  timeline.mark("created");
  const Result<void> has_scratch = scratch.get();
  const Result<void> has_network = network.get();
  if (shared.cancel) {
    return ShimFailed{EndCause::Stopped, "ended while it was prepared"};
  }
  if (not_created) {
    return not_created;
  }
  if (!has_scratch.ok()) {
    return ShimFailed{EndCause::StartFailed, "the scratch space of " + order.node() +
                                                 " failed: " + has_scratch.error().message};
  }
  if (!has_network.ok()) {
    return failed(has_network.error());
  }
  if (Result<void> filled = fill_scratch(order, dir, container.image_user()); !filled.ok()) {
    return failed(filled.error());
  }
  timeline.mark("workdir");
  return container.start();
}

Result<void> remove_job(const v1::ShimOrder& order, const AttemptDir& dir) {
  const Result<void> service = ensure_service(order.runtime(), kServiceDeadline);
  const Result<void> container =
      service.ok() ? destroy_container(order.runtime(),
                                       Podman(service_socket(order.runtime()), kAnswerDeadline),
                                       container_of(order), kRemoveDeadline)
                   : service;
  const Result<void> network = remove_network(dir.file("netns"));
  const Result<void> scratch = remove_scratch(dir.file("scratch.img"), dir.file("scratch"));
  const Result<void> gate = remove_tree(dir.file("gate"));
  for (const Result<void>& one : {container, network, scratch, gate}) {
    if (!one.ok()) {
      return one;
    }
  }
  return {};
}

}  // namespace bmgpu::agent
