#include "agent/gpu/cdi.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/host/durable_file.h"

namespace bmgpu::agent {
namespace {

constexpr std::int32_t kNvidiaMajor = 195;
constexpr std::size_t kDevicesMax = 64;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text, std::string_view inner) {
  return !text.empty() && is_letter_or_digit(text.front()) && is_letter_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(), [inner](char c) {
           return is_letter_or_digit(c) || inner.find(c) != std::string_view::npos;
         });
}

// Vendor or class. podman 4.3 panics on one of a single letter, so two are the least.
bool is_kind_part(std::string_view text, std::string_view inner) {
  return text.size() >= 2 && !(text.front() >= '0' && text.front() <= '9') && is_name(text, inner);
}

// JSON text. Paths may hold any byte: control characters are escaped, the rest is taken as UTF-8.
std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 0xF];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// One device node: readable and writable, never to be made anew with mknod.
std::string node_json(const std::string& path, const std::string& host_path, std::int32_t major,
                      std::int32_t minor) {
  return "{\"path\": " + quoted(path) + ", \"hostPath\": " + quoted(host_path) +
         ", \"type\": \"c\", \"major\": " + std::to_string(major) +
         ", \"minor\": " + std::to_string(minor) + ", \"permissions\": \"rw\"}";
}

std::string device_json(const CdiDevice& device, const std::string& folder) {
  const std::string name = "/nvidia" + std::to_string(device.minor);
  return "    {\"name\": " + quoted(device.uuid) +
         ", \"containerEdits\": {\"deviceNodes\": [\n      " +
         node_json("/dev" + name, folder + name, kNvidiaMajor, device.minor) + "\n    ]}}";
}

std::string mount_json(const CdiMount& mount) {
  return "      {\"hostPath\": " + quoted(mount.host_path) +
         ", \"containerPath\": " + quoted(mount.container_path) +
         ", \"options\": [\"ro\", \"nosuid\", \"nodev\", \"rbind\", \"rprivate\"]}";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    out += (out.empty() ? "" : ",\n") + part;
  }
  return out;
}

std::string driver_json(const CdiDriverFiles& driver) {
  std::vector<std::string> nodes;
  for (const CdiNode& node : driver.nodes) {
    nodes.push_back("      " + node_json(node.path, node.path, node.major, node.minor));
  }
  std::vector<std::string> mounts;
  for (const CdiMount& mount : driver.mounts) {
    mounts.push_back(mount_json(mount));
  }
  std::string edits = "    \"env\": [\"NVIDIA_VISIBLE_DEVICES=void\"]";
  if (!nodes.empty()) {
    edits += ",\n    \"deviceNodes\": [\n" + joined(nodes) + "\n    ]";
  }
  if (!mounts.empty()) {
    edits += ",\n    \"mounts\": [\n" + joined(mounts) + "\n    ]";
  }
  return "  \"containerEdits\": {\n" + edits + "\n  }\n";
}

Result<void> check_devices(const std::vector<CdiDevice>& devices) {
  if (devices.empty() || devices.size() > kDevicesMax) {
    return Error{ErrorCode::InvalidArgument, "a CDI file holds 1 to 64 devices"};
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_name(devices[i].uuid, "-_.:") || devices[i].minor < 0) {
      return Error{ErrorCode::InvalidArgument,
                   "'" + devices[i].uuid + "' cannot be the name of a CDI device"};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[j].uuid == devices[i].uuid || devices[j].minor == devices[i].minor) {
        return Error{ErrorCode::InvalidArgument,
                     "two CDI devices share the name " + devices[i].uuid + " or its minor number"};
      }
    }
  }
  return {};
}

}  // namespace

Result<void> check_cdi_kind(const std::string& kind) {
  const std::size_t slash = kind.find('/');
  if (slash == std::string::npos || kind.size() > 128 ||
      !is_kind_part(std::string_view(kind).substr(0, slash), "-_.") ||
      !is_kind_part(std::string_view(kind).substr(slash + 1), "-_")) {
    return Error{
        ErrorCode::InvalidArgument,
        "'" + kind + "' is not a CDI kind; write vendor/class, for instance " +
            "bm-gpu.example/gpu: letters, digits, - and _, dots in the vendor only, each part at "
            "least two long and beginning with a letter"};
  }
  return {};
}

Result<std::string> cdi_document(const CdiSpec& spec) {
  if (Result<void> kind = check_cdi_kind(spec.kind); !kind) {
    return kind.error();
  }
  if (Result<void> devices = check_devices(spec.devices); !devices) {
    return devices.error();
  }
  const std::string folder = spec.device_dir.empty() ? "/dev" : spec.device_dir;
  std::vector<std::string> devices;
  for (const CdiDevice& device : spec.devices) {
    devices.push_back(device_json(device, folder));
  }
  return "{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": " + quoted(spec.kind) +
         ",\n  \"devices\": [\n" + joined(devices) + "\n  ],\n" + driver_json(spec.driver) + "}\n";
}

std::string cdi_path(const std::string& dir, const std::string& kind) {
  std::string name = kind;
  std::replace(name.begin(), name.end(), '/', '-');
  return dir + "/" + name + ".json";
}

Result<std::string> write_cdi(const std::string& dir, const CdiSpec& spec) {
  Result<std::string> document = cdi_document(spec);
  if (!document) {
    return document;
  }
  if (Result<void> folder = ensure_folder(dir); !folder) {
    return folder.error();
  }
  const std::string path = cdi_path(dir, spec.kind);
  if (Result<std::string> present = read_small_file(path, kFileBytesMax);
      present && *present == *document) {
    return path;
  }
  if (Result<void> written = replace_file(path, *document); !written) {
    return written.error();
  }
  return path;
}

Result<std::string> keep_cdi(const std::string& dir, const CdiSpec& spec) {
  const Result<std::string> document = cdi_document(spec);
  if (!document) {
    return document;
  }
  const std::string path = cdi_path(dir, spec.kind);
  const Result<std::string> present = read_small_file(path, kFileBytesMax);
  if (present && *present != *document) {
    return Error{ErrorCode::AlreadyExists,
                 path + " was replaced: another agent of this host has the CDI kind " + spec.kind +
                     "; give each its own cdi.kind"};
  }
  return present ? path : write_cdi(dir, spec);
}

Result<void> remove_cdi(const std::string& dir, const std::string& kind) {
  if (Result<void> checked = check_cdi_kind(kind); !checked) {
    return checked;
  }
  const std::string path = cdi_path(dir, kind);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error{ErrorCode::Unavailable,
                 "cannot remove " + path + ": " + std::string(std::strerror(errno))};
  }
  return {};
}

std::string cdi_device_name(const std::string& kind, const std::string& uuid) {
  return kind + "=" + uuid;
}

}  // namespace bmgpu::agent
