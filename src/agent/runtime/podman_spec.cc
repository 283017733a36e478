#include "agent/runtime/podman_spec.h"

#include <boost/json.hpp>

namespace bmgpu::agent {
namespace {

namespace json = boost::json;

constexpr std::int64_t kCpuPeriodUs = 100'000;

json::array texts(const std::vector<std::string>& items) {
  return json::array(items.begin(), items.end());
}

json::object map_of(const std::map<std::string, std::string>& items) {
  json::object out;
  for (const auto& [name, value] : items) {
    out[name] = value;
  }
  return out;
}

json::array mounts(const ContainerSpec& spec) {
  json::array out;
  for (const BindMount& mount : spec.mounts) {
    out.push_back(json::object{{"type", "bind"},
                               {"source", mount.source},
                               {"destination", mount.target},
                               {"options", json::array{"bind", mount.read_only ? "ro" : "rw",
                                                       "nosuid", "nodev", "rprivate"}}});
  }
  return out;
}

json::object limits(const ContainerSpec& spec) {
  json::object out;
  if (spec.cpu_millis > 0) {
    out["cpu"] =
        json::object{{"period", kCpuPeriodUs}, {"quota", spec.cpu_millis * (kCpuPeriodUs / 1000)}};
  }
  if (spec.memory_bytes > 0) {
    json::object memory{{"limit", spec.memory_bytes}};
    if (spec.limit_swap) {
      memory["swap"] = spec.memory_bytes;
    }
    out["memory"] = std::move(memory);
  }
  if (spec.pids > 0) {
    out["pids"] = json::object{{"limit", spec.pids}};
  }
  return out;
}

json::array rlimits(const ContainerSpec& spec) {
  json::array out;
  // Lower-case names: 4.3 takes RLIMIT_… here and refuses it at the start.
  if (spec.nofile > 0) {
    out.push_back(json::object{{"type", "nofile"}, {"soft", spec.nofile}, {"hard", spec.nofile}});
  }
  if (spec.nproc > 0) {
    out.push_back(json::object{{"type", "nproc"}, {"soft", spec.nproc}, {"hard", spec.nproc}});
  }
  return out;
}

}  // namespace

std::string container_json(const ContainerSpec& spec) {
  json::object out{
      {"name", spec.name},
      {"entrypoint", texts(spec.entrypoint)},
      {"command", texts(spec.command)},
      {"env", map_of(spec.env)},
      {"unsetenv", texts(spec.unset_env)},
      {"labels", map_of(spec.labels)},
      {"mounts", mounts(spec)},
      {"resource_limits", limits(spec)},
      {"r_limits", rlimits(spec)},
      {"cap_drop", json::array{"all"}},
      {"no_new_privileges", true},
      {"read_only_filesystem", true},
      {"image_volume_mode", "tmpfs"},
      {"restart_policy", "no"},
      {"httpproxy", false},
      {"sdnotifyMode", "ignore"},
  };
  (spec.root_fs.empty() ? out["image"] : out["rootfs"]) =
      spec.root_fs.empty() ? spec.image : spec.root_fs;
  if (!spec.devices.empty()) {
    json::array devices;
    for (const std::string& device : spec.devices) {
      devices.push_back(json::object{{"path", device}});
    }
    out["devices"] = std::move(devices);
  }
  const auto set = [&out](const char* name, const std::string& value) {
    if (!value.empty()) {
      out[name] = value;
    }
  };
  set("user", spec.user);
  set("work_dir", spec.working_dir);
  set("hostname", spec.hostname);
  set("cgroup_parent", spec.cgroup_parent);
  if (spec.shm_bytes > 0) {
    out["shm_size"] = spec.shm_bytes;
  }
  if (spec.log_path.empty()) {
    out["log_configuration"] = json::object{{"driver", "none"}};
  } else {
    out["log_configuration"] = json::object{{"driver", "k8s-file"}, {"path", spec.log_path}};
  }
  if (spec.network_namespace.empty()) {
    out["netns"] = json::object{{"nsmode", "none"}};
  } else {
    out["netns"] = json::object{{"nsmode", "path"}, {"value", spec.network_namespace}};
  }
  return json::serialize(out);
}

}  // namespace bmgpu::agent
