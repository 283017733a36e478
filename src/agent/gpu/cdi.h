// CDI 0.5.0 files of a node: they are how a container is given exactly the GPUs of its lease.
//
// Version 0.5.0 exactly: podman 4.3 refuses newer ones and silently drops a file with an unknown
// field. No hooks. A device's name is its GPU's UUID; several agents on one host differ by `kind`.
// All functions may be called from any thread; two writers of one kind must not run at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace bmgpu::agent {

struct CdiDevice {
  std::string uuid;
  std::int32_t minor = 0;
  bool operator==(const CdiDevice&) const = default;
};

// A host file that each container of the node gets.
struct CdiMount {
  std::string host_path;
  std::string container_path;
  bool operator==(const CdiMount&) const = default;
};
struct CdiNode {
  std::string path;
  std::int32_t major = 0;
  std::int32_t minor = 0;
  bool operator==(const CdiNode&) const = default;
};

// What the NVIDIA driver needs in a container beside /dev/nvidiaN.
struct CdiDriverFiles {
  std::vector<CdiNode> nodes;    // nvidiactl, nvidia-uvm, nvidia-uvm-tools where they exist
  std::vector<CdiMount> mounts;  // libraries by soname and by version, nvidia-smi
};

struct CdiSpec {
  std::string kind;                // "vendor/class", for instance "bm-gpu.example/node-3"
  std::vector<CdiDevice> devices;  // at least one
  std::string device_dir;          // simulated GPUs: the folder of their device files; empty: /dev
  CdiDriverFiles driver;           // empty for simulated GPUs
};

// A kind is vendor/class of letters, digits, '-', '_' (and '.' in the vendor), each part two or
// more characters that begin with a letter, at most 128 bytes.
Result<void> check_cdi_kind(const std::string& kind);

// The JSON text. Its bytes depend on `spec` alone.
Result<std::string> cdi_document(const CdiSpec& spec);

// "<dir>/<vendor>-<class>.json".
std::string cdi_path(const std::string& dir, const std::string& kind);

// Writes the file durably and atomically (temporary file, fsync, rename, fsync of the folder)
// unless it holds these bytes already. Creates `dir` (0755) if it is missing. Returns the path.
Result<std::string> write_cdi(const std::string& dir, const CdiSpec& spec);

// The folder is the host's: writes the file again if somebody removed it. AlreadyExists: it holds
// something else now, as two agents of a host with one kind would have it; it is left as it is.
Result<std::string> keep_cdi(const std::string& dir, const CdiSpec& spec);

// Removes the kind's file; a missing one is not an error.
Result<void> remove_cdi(const std::string& dir, const std::string& kind);

// The qualified name that a container is created with: "vendor/class=GPU-…".
std::string cdi_device_name(const std::string& kind, const std::string& uuid);

// Makes character devices 195:minor named nvidia<minor>, mode 0666, in `dir` (created, 0755) and
// removes those of other minors. They have no driver: in a container, opening one gives ENXIO where
// it was granted and EPERM where it was not. Needs root (CAP_MKNOD).
Result<void> ensure_simulated_devices(const std::string& dir,
                                      const std::vector<std::int32_t>& minors);
Result<void> remove_simulated_devices(const std::string& dir);

// Looks under `root` ("/" in production) for the real driver's device numbers (proc/devices) and
// libraries of version `driver_version`. What is missing is left out: `doctor` tells. Unavailable:
// the kernel module is not loaded.
Result<CdiDriverFiles> find_driver_files(const std::string& root,
                                         const std::string& driver_version);

}  // namespace bmgpu::agent
