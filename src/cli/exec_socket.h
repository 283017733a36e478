// One exec session with a job: bytes in, bytes and an exit code out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "cli/failure.h"
#include "cli/terminal.h"

namespace bmgpu::v1 {
class ExecStart;
}

namespace bmgpu::cli {

class Context;

struct ExecOutput {
  enum class Stream { Stdout, Stderr } stream;
  std::string bytes;
};
struct ExecExit {
  int code = 0;
  std::string not_started = {};  // why there never was such a process
  std::string engine_text = {};  // the container engine's own words for that
};
struct ExecFailed {  // it could not be run, or the connection is gone
  Error error;
  std::string engine_text = {};
};
using ExecItem = std::variant<ExecOutput, ExecExit, ExecFailed>;

Failure failure_of(const ExecFailed& failed);

// next() is for one thread; the other methods are for any.
class ExecSocket {
 public:
  static Result<std::unique_ptr<ExecSocket>> open(Context& context, const v1::ExecStart& start);
  ~ExecSocket();
  ExecSocket(const ExecSocket&) = delete;
  ExecSocket& operator=(const ExecSocket&) = delete;

  // Waits while the connection is behind. Refused once the session is over.
  Result<void> send_stdin(std::string_view bytes);
  void close_stdin();
  void resize(TerminalSize size);

  // ExecExit or ExecFailed is the last item.
  ExecItem next();

 private:
  struct Shared;
  explicit ExecSocket(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;  // with the callbacks of the connection's thread
};

}  // namespace bmgpu::cli
