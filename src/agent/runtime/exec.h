// A further command in a running job (`bmcli exec`), and files in and out of it (`bmcli cp`).
//
// A session has one thread of its own, which makes every callback; they may block, and while one
// does, no more output is read from the job (that is the flow control). The other methods may be
// called from any thread, also from a callback. The first callback may come before start_exec() has
// returned; destroying a session from its callback is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bmgpu/v1/node_files.pb.h"

namespace bmgpu::agent {

struct TerminalSize {
  std::uint16_t rows = 24;
  std::uint16_t columns = 80;
};

struct ExecOptions {
  std::string socket;     // libpod's unix socket
  std::string container;  // name or id
  std::vector<std::string> command;
  bool terminal = false;
  TerminalSize size;
  std::string working_dir;  // empty = the job's
};

enum class ArchiveWay : std::uint8_t { Upload, Download };

struct ArchiveOptions {
  v1::RuntimeFacts runtime;  // an engine of its own serves it (service.h)
  std::string container;
  ArchiveWay way = ArchiveWay::Download;
  // Absolute, inside the job. Upload: a folder that exists. Resolved inside the job's own mount
  // namespace, so a symbolic link cannot lead out of it.
  std::string path;
};

struct ExecEnd {
  Result<int> outcome;  // the command's exit code (archives: 0), or why it could not be run
  std::string not_started = {};  // if the program could not be started; outcome is 126 or 127 then
  std::string engine_text = {};  // the container engine's words, where ours stand in their place
};

struct ExecCallbacks {
  std::function<void(std::string_view)> on_stdout;  // or the bytes of the tar
  std::function<void(std::string_view)> on_stderr;
  std::function<void(const ExecEnd&)> on_end;  // once, last
};

// Input that the job has not read yet; beyond it write() says false. (Documented limit.)
inline constexpr std::size_t kExecInputBytesMax = 1024 * 1024;

class ExecSession {
 public:
  virtual ~ExecSession() = default;  // ends the session; a command that still runs gets SIGHUP/EOF

  // Bytes for the command, or of the tar that is uploaded. False: over kExecInputBytesMax or ended;
  // nothing was taken.
  virtual bool write(std::string_view bytes) = 0;
  virtual void close_input() = 0;
  virtual void resize(TerminalSize size) = 0;
  // Bytes of input that may still be written now.
  virtual std::size_t room() const = 0;
};

// Returns at once; failures arrive in on_end.
std::unique_ptr<ExecSession> start_exec(ExecOptions options, ExecCallbacks callbacks);
std::unique_ptr<ExecSession> start_archive(ArchiveOptions options, ExecCallbacks callbacks);

}  // namespace bmgpu::agent
