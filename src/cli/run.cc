#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow_job.h"
#include "cli/format.h"
#include "cli/job_plan.h"
#include "cli/message_json.h"
#include "cli/order_text.h"
#include "cli/quote_text.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/upload.h"
#include "cli/words.h"
#include "wire/units.h"

namespace bmgpu::cli {
namespace {

using Clock = std::chrono::steady_clock;

// "sh -c …": shell syntax in the rest of it is meant for that shell.
bool starts_shell(const std::vector<std::string>& command) {
  const std::string program = command.empty() ? "" : command[0].substr(command[0].rfind('/') + 1);
  const bool is_shell = program == "sh" || program == "bash" || program == "dash" ||
                        program == "ash" || program == "zsh";
  return is_shell && command.size() > 1 && command[1].starts_with('-');
}

// From the command line to the placed order; one method for each step.
class RunCommand {
 public:
  RunCommand(Context& context, const Arguments& arguments)
      : context_(context), arguments_(arguments), yes_(arguments.has("yes")) {}

  Answer run() {
    for (const auto step : {&RunCommand::read_plan, &RunCommand::scan, &RunCommand::ask_price}) {
      if (Result<void> done = (this->*step)(); !done) {
        return done.error();
      }
    }
    if (arguments_.has("dry-run")) {
      return dry_run();
    }
    if (Result<void> agreed = consent(); !agreed) {
      return agreed.error();
    }
    if (Result<void> sent = send_workdir(); !sent) {
      return sent.error();
    }
    if (Result<void> placed = place(); !placed) {
      const bool unknown = placed.error().code == ErrorCode::Unavailable ||
                           placed.error().code == ErrorCode::DeadlineExceeded;
      return failure_of(placed.error(),
                        unknown ? "it may have been placed nevertheless: bmcli ps shows it" : "");
    }
    return stay();
  }

 private:
  Result<void> read_plan() {
    Result<JobPlan> plan = job_plan(arguments_, context_.environment().variable);
    if (!plan) {
      return plan.error();
    }
    plan_ = std::move(*plan);
    fill(plan_, request_);
    if (!plan_.shell_syntax.empty() && !starts_shell(plan_.command)) {
      context_.note("note: no shell runs the command, so " + printable(plan_.shell_syntax) +
                    " is passed on as it stands. For a shell: --command \"sh -c '…'\"");
    }
    return {};
  }

  Result<void> scan() {
    if (plan_.workdir.empty()) {
      return {};
    }
    Result<Workdir> workdir = scan_with_progress(context_, plan_.workdir);
    if (!workdir) {
      return workdir.error();
    }
    workdir_ = std::move(*workdir);
    fill(*workdir_, *request_.mutable_job());
    return {};
  }

  // A price for exactly this order, or why there is none now and the order would wait.
  Result<void> ask_price() {
    if (!plan_.quote.empty()) {
      return describe_given_quote();
    }
    v1::CreateQuoteRequest request;
    fill(plan_.resources, request);
    request_.clear_quote();
    quoted_at_ = Clock::now();
    quote_.emplace();
    Result<void> called = context_.mutate("CreateQuote", request, *quote_);
    if (called) {
      request_.set_quote(quote_->id());
      return {};
    }
    quote_.reset();
    if (called.error().code != ErrorCode::Refused || plan_.no_wait) {
      return called;
    }
    why_it_waits_ = called.error().message;
    return {};
  }

  Result<void> describe_given_quote() {
    v1::ExplainRequest request;
    request.set_id(plan_.quote);
    return context_.call("Explain", request, given_quote_);
  }

  std::string price_text() const {
    std::string text;
    if (quote_) {
      text = quote_text(*quote_, plan_.resources.max_price_micros);
    } else if (!plan_.quote.empty()) {
      text = plan_.quote + "\n";
      for (const std::string& line : given_quote_.lines()) {
        text += "  " + printable(line) + "\n";
      }
    } else {
      text = "It cannot start now: " + printable(why_it_waits_) +
             "\nThe order waits and starts at the price of that moment.\n";
    }
    return text;
  }

  std::string summary() const {
    std::string text = price_text();
    text += "  image        " + printable(plan_.image) + "\n";
    text += "  command      " + shown_command() + "\n";
    if (workdir_) {
      text += "  workdir      " + files_text(workdir_->files.size()) + ", " +
              wire::print_size_short(workdir_->bytes) + " of " + printable(plan_.workdir) + "\n";
    }
    return text;
  }

  std::string shown_command() const {
    constexpr std::size_t kShownMax = 200;
    const std::string line = join_words(plan_.command);
    if (plan_.command.empty()) {
      return "the image's own";
    }
    return printable(line.substr(0, kShownMax)) + (line.size() > kShownMax ? "…" : "");
  }

  Answer dry_run() {
    Answer answer(price_text() + "The order:\n" + order_text(request_) + "Nothing was placed.\n",
                  Json::object());
    answer.document.set("order", to_json(request_));
    answer.document.set("quote", quote_ ? to_json(*quote_) : Json());
    return answer;
  }

  // On a terminal a person agrees. A script agreed when it was written, but only to a price that is
  // bounded: by the quote, by --max-price, or by -y.
  Result<void> consent() {
    context_.environment().err << summary() << std::flush;
    if (yes_) {
      return {};
    }
    if (context_.can_ask()) {
      if (ask(context_.environment().in, context_.environment().err, "Rent it?")) {
        return {};
      }
      return Error{ErrorCode::Refused, "you did not agree; nothing was rented"};
    }
    if (quote_ || !plan_.quote.empty() || plan_.resources.max_price_micros > 0) {
      return {};
    }
    return Error{ErrorCode::Refused,
                 why_it_waits_ +
                     ". To wait in a script, set --max-price PRICE (per GPU-hour) or "
                     "-y for any price; --no-wait never waits"};
  }

  Result<void> send_workdir() {
    if (!workdir_) {
      return {};
    }
    const Result<Uploaded> uploaded = upload(context_, *workdir_);
    if (!uploaded) {
      return uploaded.error();
    }
    context_.note("uploaded " + files_text(uploaded->files) + ", " +
                  wire::print_size_short(uploaded->bytes) + "; the market had the rest");
    return {};
  }

  // A quote that ran out while somebody thought or the folder was sent is asked for again; what
  // costs more needs a new consent.
  Result<void> renew_quote() {
    const std::chrono::milliseconds lifetime(quote_->expires_unix_ms() - quote_->start_unix_ms());
    if (Clock::now() - quoted_at_ < lifetime) {
      return {};
    }
    const std::int64_t agreed = quote_->total_micros();
    if (Result<void> asked = ask_price(); !asked) {
      return asked;
    }
    if (quote_ && quote_->total_micros() <= agreed) {
      return {};
    }
    context_.note("the quote has run out, and it costs more now:");
    return consent();
  }

  Result<void> place() {
    if (quote_) {
      if (Result<void> renewed = renew_quote(); !renewed) {
        return renewed;
      }
    }
    return context_.mutate("PlaceOrder", request_, order_);
  }

  Answer stay() {
    if (!arguments_.has("detach")) {
      context_.note(order_.id() + " is placed");
      return follow_job(context_, order_);
    }
    context_.note(come_back_hint(order_));
    return {order_.id() + "\n", Json::object().set("order", to_json(order_)).set("detached", true)};
  }

  Context& context_;
  const Arguments& arguments_;
  bool yes_;
  JobPlan plan_;
  v1::PlaceOrderRequest request_;
  std::optional<Workdir> workdir_;
  std::optional<v1::Quote> quote_;
  Clock::time_point quoted_at_;
  v1::ExplainResponse given_quote_;  // of --quote
  std::string why_it_waits_;
  v1::Order order_;
};

Answer run_run(Context& context, const Arguments& arguments) {
  return RunCommand(context, arguments).run();
}

}  // namespace

CommandSpec run_command() {
  CommandSpec command{
      .name = "run",
      .summary = "Rent GPUs and run a job on them",
      .description =
          "Shows the price first and on a terminal asks. In a script it goes on without asking,\n"
          "because the quote bounds the cost; only an order that must wait, at a price nobody "
          "knows\n"
          "yet, needs --max-price or -y there. Then it follows the job: progress on standard "
          "error,\n"
          "the job's log on standard output. Ctrl-C leaves the job running. Exit code 6 if the "
          "job\n"
          "did not end by itself with exit code 0.",
      .options = resource_options(),
      .rest = "COMMAND [ARG…]",
      .examples =
          {{"bmcli run -g 2 --duration 2h --image pytorch:2.0 --command \"python train.py\"",
            "Two GPUs for at most two hours"},
           {"bmcli run -g 1 --duration 30m --image pytorch:2.0 --workdir . -- python train.py",
            "With the files of this folder"},
           {"bmcli run -f job.yaml --max-price 1.20 -d", "From a job file, and do not stay"},
           {"bmcli run -g 8 --gpu H200 --duration 1d --image train:3 --dry-run --json",
            "The exact order and its quote; nothing is placed"}},
      .run = run_run};
  for (const OptionSpec& option : job_options()) {
    command.options.push_back(option);
  }
  command.options.push_back({.name = "detach",
                             .letter = 'd',
                             .value = "",
                             .help = "Print the order's id and do not follow the job"});
  command.options.push_back(
      {.name = "dry-run", .value = "", .help = "Show order and quote, place nothing"});
  command.options.push_back({.name = "yes", .letter = 'y', .value = "", .help = "Do not ask"});
  return command;
}

}  // namespace bmgpu::cli
