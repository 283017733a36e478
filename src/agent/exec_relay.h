// `bmcli exec` and `bmcli cp` at the node: frames of bmd's session ↔ commands in running jobs.
//
// Flow control in both directions, by credit: `window` in a frame says how many further bytes of
// data its sender takes. Without credit a command's output stays in the command's pipe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/worker_pool.h"
#include "base/result.h"

namespace bmgpu::v1 {
class AgentFrame;
class ExecClientFrame;
class ExecStart;
class RuntimeFacts;
class StreamFrame;
}  // namespace bmgpu::v1

namespace bmgpu::agent {

class EventLoop;

// Lives on the loop's thread; output is sent from the streams' own threads.
class ExecRelay {
 public:
  struct Options {
    std::function<bool(const v1::AgentFrame&)> send;  // thread-safe; false: not now
    // The running container of a lease, or why there is none.
    std::function<Result<std::string>(const std::string& lease)> container;
    std::function<v1::RuntimeFacts()> runtime;  // of the engine
  };
  // Limits.
  static constexpr std::size_t kStreamsMax = 64;
  static constexpr std::size_t kChunkBytes = 32 * 1024;
  // What each side may send before the other's first grant.
  static constexpr std::size_t kWindowBytes = 1024 * 1024;

  ExecRelay(EventLoop& loop, Options options);
  ~ExecRelay();  // ends all

  void take(const v1::StreamFrame& frame);
  void session_closed();  // nobody reads any more: ends all

 private:
  struct Stream;
  void open(const v1::StreamFrame& frame);
  void run(const std::shared_ptr<Stream>& stream, const v1::ExecStart& start,
           const std::string& container);
  void input(const std::shared_ptr<Stream>& stream, const v1::ExecClientFrame& frame);
  void grant(Stream& stream);
  void grant_later(const std::shared_ptr<Stream>& stream);
  void refuse(std::uint64_t stream, const std::string& why);
  void end(std::uint64_t id);

  EventLoop& loop_;
  const Options options_;
  std::map<std::uint64_t, std::shared_ptr<Stream>> streams_;
  WorkerPool reaper_{1};  // ending a session may wait for the engine
};

}  // namespace bmgpu::agent
