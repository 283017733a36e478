#include "agent/attempt_starter.h"

#include <chrono>

#include "agent/attempt_table.h"
#include "agent/blob_cache.h"
#include "agent/event_loop.h"
#include "agent/node_watch.h"
#include "bmgpu/v1/agent.pb.h"
#include "bmgpu/v1/node_files.pb.h"
#include "wire/hash.h"

namespace bmgpu::agent {
namespace {

constexpr std::chrono::milliseconds kFetchRetry{1000};

std::vector<std::string> files_of(const v1::AttemptSpec& spec) {
  std::vector<std::string> hashes;
  for (const v1::WorkFile& file : spec.job().workdir()) {
    if (!file.sha256().empty()) {
      hashes.push_back(wire::hex(file.sha256()));
    }
  }
  return hashes;
}

}  // namespace

void AttemptStarter::create(const Key& key) {
  const v1::AttemptSpec* spec = parts_.wanted(key);
  if (spec == nullptr || parts_.node.runtime() == nullptr) {
    return;
  }
  std::vector<std::string> missing = parts_.blobs.missing(files_of(*spec));
  if (missing.empty()) {
    start(key, *spec);
    return;
  }
  parts_.table.expect(key, *spec);
  parts_.table.set_progress(key, "files: " + std::to_string(missing.size()) + " to fetch");
  fetch(key, std::move(missing));
}

void AttemptStarter::fetch(const Key& key, std::vector<std::string> missing) {
  const auto on_progress = [this, key](std::size_t left) {
    parts_.table.set_progress(key, "files: " + std::to_string(left) + " to fetch");
  };
  const auto on_done = [this, key](const Result<void>& outcome) {
    const Attempt* attempt = parts_.table.find(key);
    const v1::AttemptSpec* spec = parts_.wanted(key);
    if (attempt == nullptr || attempt->on_disk || spec == nullptr) {
      return;  // no longer wanted
    }
    if (outcome) {
      start(key, *spec);
    } else if (outcome.error().code == ErrorCode::Unavailable ||
               outcome.error().code == ErrorCode::DeadlineExceeded) {
      parts_.table.set_progress(key, "files: " + outcome.error().message);
      parts_.loop.after(kFetchRetry, [this, key] {
        const Attempt* waiting = parts_.table.find(key);
        const v1::AttemptSpec* still = parts_.wanted(key);
        if (waiting != nullptr && !waiting->on_disk && still != nullptr) {
          fetch(key, parts_.blobs.missing(files_of(*still)));
        }
      });
    } else {
      parts_.table.fail(key, *spec, v1::END_REASON_START_FAILED,
                        "a file of the working directory: " + outcome.error().message);
    }
  };
  parts_.blobs.fetch(missing, on_progress, on_done);
}

void AttemptStarter::start(const Key& key, const v1::AttemptSpec& spec) {
  const std::vector<std::string> uuids(spec.gpu_uuids().begin(), spec.gpu_uuids().end());
  const Result<std::vector<DeviceGrant>> devices = parts_.node.grants(uuids);
  if (!devices) {
    parts_.table.fail(key, spec, v1::END_REASON_GPU_LOST, devices.error().message);
    return;
  }
  const Result<void> started =
      parts_.table.start(key, parts_.node.runtime()->order(spec, *devices));
  if (!started) {
    parts_.table.fail(key, spec, v1::END_REASON_START_FAILED,
                      "the node cannot keep the job's order: " + started.error().message);
  }
}

}  // namespace bmgpu::agent
