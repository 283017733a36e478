// From an attempt that bmd wants to a running shim: files, devices, order.
//
// With everything at hand the shim runs before create() returns, within milliseconds.
#pragma once

#include <functional>
#include <string>

#include "agent_core/attempt.h"

namespace bmgpu::v1 {
class AttemptSpec;
}

namespace bmgpu::agent {

class AttemptTable;
class BlobCache;
class EventLoop;
class NodeWatch;

// Lives on the loop's thread.
class AttemptStarter {
 public:
  using Key = agent_core::AttemptKey;
  struct Parts {
    EventLoop& loop;
    AttemptTable& table;
    BlobCache& blobs;
    NodeWatch& node;
    // The spec as bmd wants it now; null: no longer wanted.
    std::function<const v1::AttemptSpec*(const Key&)> wanted;
  };
  explicit AttemptStarter(Parts parts) : parts_(std::move(parts)) {}

  // Does nothing while the engine is not ready: ask again then. What can never work is kept in the
  // table as an ended attempt.
  void create(const Key& key);

 private:
  void fetch(const Key& key, std::vector<std::string> missing);
  void start(const Key& key, const v1::AttemptSpec& spec);

  Parts parts_;
};

}  // namespace bmgpu::agent
