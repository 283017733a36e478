// Notices at once when a shim rewrites an attempt's status and when conmon appends to its log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/runtime/files.h"
#include "agent_core/attempt.h"
#include "base/result.h"

namespace bmgpu::agent {

class EventLoop;

// inotify on the attempt's folder (files that are renamed into it or made in it) and on its log (so
// that writes to the scratch file, which lies in the same folder, wake nobody). Lives on the loop's
// thread. Notices may come twice and for nothing, but never too few.
class AttemptWatch {
 public:
  using Key = agent_core::AttemptKey;
  struct Callbacks {
    std::function<void(const Key&)> on_status;
    std::function<void(const Key&)> on_log;
    std::function<void()> on_overflow;  // the kernel dropped notices: look at everything
  };

  static Result<std::unique_ptr<AttemptWatch>> create(EventLoop& loop, Callbacks callbacks);
  ~AttemptWatch();
  AttemptWatch(const AttemptWatch&) = delete;
  AttemptWatch& operator=(const AttemptWatch&) = delete;

  // REQUIRES: the folder exists. What lies in it already gives no notice.
  Result<void> add(const Key& key, const std::string& folder);
  void remove(const Key& key);

 private:
  struct Watched {
    Key key;
    std::string folder;
    bool log = false;  // of the log file, else of the folder
  };
  AttemptWatch(EventLoop& loop, Fd fd, Callbacks callbacks);
  void drain();
  void take(int watch, unsigned mask, const std::string& name);
  bool watch_log(const Key& key, const std::string& folder);

  EventLoop& loop_;
  Fd fd_;
  const Callbacks callbacks_;
  std::map<int, Watched> watched_;  // by inotify's descriptor
};

}  // namespace bmgpu::agent
