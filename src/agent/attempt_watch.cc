#include "agent/attempt_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "agent/event_loop.h"

namespace bmgpu::agent {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

}  // namespace

Result<std::unique_ptr<AttemptWatch>> AttemptWatch::create(EventLoop& loop, Callbacks callbacks) {
  Fd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.valid()) {
    return errno_error("watch files (see fs.inotify.max_user_instances)", errno);
  }
  std::unique_ptr<AttemptWatch> watch(new AttemptWatch(loop, std::move(fd), std::move(callbacks)));
  AttemptWatch* raw = watch.get();
  if (Result<void> watched = loop.watch(raw->fd_.get(), [raw] { raw->drain(); }); !watched) {
    return watched.error();
  }
  return watch;
}

AttemptWatch::AttemptWatch(EventLoop& loop, Fd fd, Callbacks callbacks)
    : loop_(loop), fd_(std::move(fd)), callbacks_(std::move(callbacks)) {}

AttemptWatch::~AttemptWatch() { loop_.unwatch(fd_.get()); }

Result<void> AttemptWatch::add(const Key& key, const std::string& folder) {
  const int watch = inotify_add_watch(fd_.get(), folder.c_str(), IN_MOVED_TO | IN_CREATE);
  if (watch < 0) {
    return errno_error("watch " + folder + " (see fs.inotify.max_user_watches)", errno);
  }
  watched_[watch] = {key, folder, false};
  watch_log(key, folder);
  return {};
}

bool AttemptWatch::watch_log(const Key& key, const std::string& folder) {
  const int watch = inotify_add_watch(fd_.get(), (folder + "/log").c_str(), IN_MODIFY);
  if (watch >= 0) {
    watched_[watch] = {key, folder, true};
  }
  return watch >= 0;  // not there yet: its creation gives a notice
}

void AttemptWatch::remove(const Key& key) {
  for (auto at = watched_.begin(); at != watched_.end();) {
    if (at->second.key == key) {
      inotify_rm_watch(fd_.get(), at->first);
      at = watched_.erase(at);
    } else {
      ++at;
    }
  }
}

void AttemptWatch::drain() {
  alignas(inotify_event) char buffer[kBufferBytes];
  while (true) {
    const ssize_t bytes = read(fd_.get(), buffer, sizeof buffer);
    if (bytes <= 0) {
      return;
    }
    std::set<int> seen_logs;  // a chatty job: one notice a round is enough
    for (ssize_t at = 0; at < bytes;) {
      inotify_event event{};
      std::memcpy(&event, buffer + at, sizeof event);
      const char* name = buffer + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        callbacks_.on_overflow();
      } else if ((event.mask & IN_MODIFY) == 0 || seen_logs.insert(event.wd).second) {
        take(event.wd, event.mask, event.len > 0 ? std::string(name) : std::string());
      }
    }
  }
}

void AttemptWatch::take(int watch, unsigned mask, const std::string& name) {
  const auto at = watched_.find(watch);
  if (at == watched_.end()) {
    return;
  }
  const Watched watched = at->second;
  if ((mask & IN_IGNORED) != 0) {
    watched_.erase(at);
  } else if (watched.log) {
    callbacks_.on_log(watched.key);
  } else if (name == "status.pb") {
    callbacks_.on_status(watched.key);
  } else if (name == "log" && watch_log(watched.key, watched.folder)) {
    callbacks_.on_log(watched.key);
  }
}

}  // namespace bmgpu::agent
