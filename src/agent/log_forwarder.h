// Sends the jobs' logs to bmd: every line at least once, in order, as soon as it is written.
//
// A line's number in the attempt's log file is its sequence, and bmd acknowledges by sequence what
// is on its own disk. So nothing needs to be remembered but how far that is: a line may be sent
// twice (after a reconnect, or an agent's restart), and bmd drops what it has.
//
// Memory: nothing is kept here; lines are read again when they must be sent again. At most 1 MiB of
// an attempt is on its way unacknowledged, and nothing is read while the session holds over 4 MiB.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/runtime/log_tail.h"
#include "agent_core/attempt.h"

namespace bmgpu::v1 {
class AgentFrame;
class LogAck;
}  // namespace bmgpu::v1
namespace bmgpu::wire {
class Log;
}

namespace bmgpu::agent {

class EventLoop;
struct AttemptName;

// Lives on the loop's thread.
class LogForwarder {
 public:
  using Key = agent_core::AttemptKey;
  struct Options {
    std::function<bool(const v1::AgentFrame&)> send;  // false: not now
    std::function<std::size_t()> queued_bytes;        // of the session
    std::function<void(const Key&)> on_complete;      // bmd has everything
  };
  // Limits. A batch is one frame.
  static constexpr std::size_t kBatchBytes = 256 * 1024;
  static constexpr std::size_t kBatchLinesMax = 2000;
  static constexpr std::size_t kUnacknowledgedBytesMax = 1024 * 1024;
  static constexpr std::size_t kSessionBytesMax = 4 * 1024 * 1024;

  LogForwarder(EventLoop& loop, wire::Log& log, Options options);
  ~LogForwarder();

  // Follows the log in `folder`. Goes on where bmd had acknowledged, as the agent before this one
  // kept it there. Known already: no change.
  void add(const Key& key, const AttemptName& name, const std::string& folder);
  void remove(const Key& key);

  void grown(const Key& key);  // the file may have more lines
  void ended(const Key& key);  // no line will be written any more
  void acknowledged(const v1::LogAck& ack);
  // A new session: what was not acknowledged is sent again.
  void session_opened();
  void session_closed() { open_ = false; }
  // Sends again what has waited for an acknowledgement for 10 s. Call it every second.
  void tick();

 private:
  using Clock = std::chrono::steady_clock;
  struct Batch {
    LogPosition end;
    std::size_t bytes = 0;
  };
  struct Feed {
    std::string lease;
    std::uint32_t rank = 0;
    std::uint64_t attempt = 0;
    std::string folder;
    LogTail tail;           // at the next line to send
    LogPosition confirmed;  // bmd has everything before it
    LogPosition kept;       // of `confirmed`, as last written to disk
    std::deque<Batch> on_way;
    std::size_t on_way_bytes = 0;
    bool ended = false;
    bool end_sent = false;
    bool complete = false;       // acknowledged
    bool scheduled = false;      // pump() is posted
    Clock::time_point progress;  // last send or acknowledgement
  };
  void schedule(const Key& key, Feed& feed);
  void pump(const Key& key);
  bool send_lines(Feed& feed, const std::vector<LogEntry>& lines);
  bool send_end(Feed& feed);
  void rewind(Feed& feed);
  void keep(Feed& feed);

  EventLoop& loop_;
  wire::Log& log_;
  const Options options_;
  bool open_ = false;
  std::map<Key, Feed> feeds_;
};

}  // namespace bmgpu::agent
