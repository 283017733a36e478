#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/exec_socket.h"
#include "cli/file.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kDocumentBytesMax = std::size_t{16} << 20;

// Standard input on its way to the command, on a thread of its own until input or object ends.
class InputPump {
 public:
  InputPump(ExecSocket& socket, int descriptor, bool terminal)
      : socket_(socket), descriptor_(descriptor), terminal_(terminal) {
    std::array<int, 2> ends{};
    check(::pipe2(ends.data(), O_CLOEXEC) == 0, "exec: no pipe");
    stopped_ = Descriptor(ends[0]);
    stop_ = Descriptor(ends[1]);
    thread_ = std::thread([this] { run(); });
  }
  ~InputPump() {
    stop_ = Descriptor();  // the reading end sees it closed
    thread_.join();
  }
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

 private:
  static constexpr int kResizeLookMs = 250;

  void run() {
    TerminalSize size = terminal_size(descriptor_);
    std::array<char, 16384> buffer;
    while (true) {
      std::array<pollfd, 2> wanted = {{{descriptor_, POLLIN, 0}, {stopped_.number(), POLLIN, 0}}};
      const int ready = ::poll(wanted.data(), wanted.size(), terminal_ ? kResizeLookMs : -1);
      if (wanted[1].revents != 0) {
        return;
      }
      if (ready == 0) {
        follow_resize(size);
        continue;
      }
      if (ready < 0 || wanted[0].revents == 0) {
        continue;
      }
      const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        socket_.close_stdin();
        return;
      }
      if (!socket_.send_stdin({buffer.data(), static_cast<std::size_t>(got)})) {
        return;
      }
    }
  }

  void follow_resize(TerminalSize& size) {
    const TerminalSize now = terminal_size(descriptor_);
    if (now.rows != size.rows || now.columns != size.columns) {
      size = now;
      socket_.resize(now);
    }
  }

  ExecSocket& socket_;
  int descriptor_;
  bool terminal_;
  Descriptor stopped_;
  Descriptor stop_;
  std::thread thread_;
};

Answer finished(Context& context, const ExecExit& exit, Json document) {
  Answer answer("", std::move(document));
  answer.document.set("exit_code", exit.code);
  if (!exit.not_started.empty()) {
    answer.failure = Failure{ExitCode::JobFailed, "command_failed", exit.not_started,
                             "look what is there: bmcli exec ID -- ls /usr/bin", exit.engine_text};
  } else if (exit.code != 0) {
    answer.failure = Failure{ExitCode::JobFailed, "command_failed",
                             "the command ended with exit code " + std::to_string(exit.code), ""};
  }
  if (answer.failure && !context.json() && context.environment().in_terminal) {
    context.note("");
  }
  return answer;
}

// Copies the output until the command ends; with --json into the document.
Answer relay(Context& context, ExecSocket& socket) {
  Environment& environment = context.environment();
  std::string out;
  std::string err;
  while (true) {
    ExecItem item = socket.next();
    if (auto* output = std::get_if<ExecOutput>(&item)) {
      const bool is_out = output->stream == ExecOutput::Stream::Stdout;
      if (context.json()) {
        (is_out ? out : err) += output->bytes;
        if (out.size() + err.size() > kDocumentBytesMax) {
          return Answer(Error{ErrorCode::ResourceExhausted,
                              "the command wrote more than 16 MiB: leave --json out"});
        }
        continue;
      }
      const Result<void> written =
          write_all(is_out ? environment.out_descriptor : environment.err_descriptor, output->bytes,
                    is_out ? "standard output" : "standard error");
      if (!written) {
        return written.error();
      }
    } else if (const auto* exit = std::get_if<ExecExit>(&item)) {
      Json document = Json::object();
      document.set("stdout", out).set("stderr", err);
      return finished(context, *exit, std::move(document));
    } else if (const auto* failed = std::get_if<ExecFailed>(&item)) {
      return failure_of(*failed);
    }
  }
}

Result<v1::ExecStart> start_of(Context& context, const Arguments& arguments) {
  v1::ExecStart start;
  start.set_id(arguments.operand(0));
  const std::vector<std::string>& operands = arguments.operands();
  start.mutable_command()->Assign(operands.begin() + 1, operands.end());
  if (const auto& rest = arguments.rest()) {
    for (const std::string& word : *rest) {
      start.add_command(word);
    }
  }
  if (start.command().empty()) {
    return Error{ErrorCode::InvalidArgument,
                 "the command is missing: bmcli exec " + start.id() + " -- nvidia-smi"};
  }
  Environment& environment = context.environment();
  const bool both_ends = environment.in_terminal && environment.out_terminal && !context.json();
  if (arguments.has("tty") && !both_ends) {
    return Error{ErrorCode::InvalidArgument, "--tty needs a terminal on standard input and output"};
  }
  start.set_terminal(arguments.has("tty"));
  if (start.terminal()) {
    const TerminalSize size = terminal_size(environment.in_descriptor);
    start.mutable_size()->set_rows(size.rows);
    start.mutable_size()->set_columns(size.columns);
  }
  return start;
}

Answer run_exec(Context& context, const Arguments& arguments) {
  const Result<v1::ExecStart> start = start_of(context, arguments);
  if (!start) {
    return start.error();
  }
  Result<std::unique_ptr<ExecSocket>> socket = ExecSocket::open(context, *start);
  if (!socket) {
    return socket.error();
  }
  Environment& environment = context.environment();
  const bool interactive = arguments.has("interactive") || start->terminal();
  std::unique_ptr<TerminalMode> raw;
  if (start->terminal()) {
    raw = std::make_unique<TerminalMode>(environment.in_descriptor, TerminalMode::Kind::Raw);
  }
  std::unique_ptr<InputPump> input;
  if (interactive) {
    input = std::make_unique<InputPump>(**socket, environment.in_descriptor, start->terminal());
  } else {
    (*socket)->close_stdin();
  }
  Answer answer = relay(context, **socket);
  input.reset();
  return answer;
}

}  // namespace

CommandSpec exec_command() {
  return {
      .name = "exec",
      .summary = "Run a further command in a running job",
      .description =
          "Exit code 0 if the command's was 0, otherwise 6; --json has the command's own exit\n"
          "code and output. Without -i the command's standard input is empty.",
      .operands = {{.name = "ID", .help = "Order or lease"},
                   {.name = "COMMAND",
                    .help = "Program and arguments; put -- before it if it has options",
                    .required = false,
                    .repeats = true}},
      .options =
          {{.name = "interactive", .letter = 'i', .value = "", .help = "Pass standard input on"},
           {.name = "tty", .letter = 't', .value = "", .help = "Give it a terminal; implies -i"}},
      .rest = "COMMAND [ARG…]",
      .examples = {{"bmcli exec order-7 -- nvidia-smi", "Look at the GPUs from inside"},
                   {"bmcli exec -t order-7 bash", "A shell in the job"}},
      .run = run_exec};
}

}  // namespace bmgpu::cli
