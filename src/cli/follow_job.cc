#include "cli/follow_job.h"

#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/context.h"
#include "cli/feed.h"
#include "cli/format.h"
#include "cli/image_hint.h"
#include "cli/log_print.h"
#include "cli/message_json.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

using Clock = std::chrono::steady_clock;

// How long the last lines may take after the order has ended.
constexpr std::chrono::seconds kLogGrace{15};

class JobFollower {
 public:
  JobFollower(Context& context, const v1::Order& placed)
      : context_(context),
        environment_(context.environment()),
        order_(placed),
        status_(environment_.err,
                environment_.err_terminal ? StatusLine::Mode::Rewrite : StatusLine::Mode::Lines),
        printer_(environment_.out, environment_.err, LogPrinter::Form::Text, 0),
        feed_(context) {}

  Answer run() {
    feed_.watch_order(order_.id());
    see_order(order_);
    while (!answer_) {
      const std::optional<FeedItem> item = feed_.next(log_until_);
      if (!item) {
        context_.note("bmcli: the end of the log has not come; bmcli logs " + order_.id());
        finish();
        break;
      }
      std::visit([this](const auto& happened) { handle(happened); }, *item);
    }
    status_.clear();
    return std::move(*answer_);
  }

 private:
  void handle(const OrderChanged& change) {
    v1::Order order;
    if (order.ParseFromString(change.bytes)) {
      see_order(order);
    }
  }

  void handle(const LogEntries& entries) {
    status_.clear();
    printer_.print(entries);
    log_complete_ = log_complete_ || entries.complete;
    finish_if_over();
  }

  void handle(const ConnectionLost& lost) {
    status_.show("connection lost (" + lost.why + "); the job goes on; trying again");
  }

  void handle(const ConnectionBack&) { status_.show("connected again"); }

  void handle(const FeedFailed& failed) {
    if (failed.source == FeedFailed::Source::Log) {
      log_complete_ = true;
      log_problem_ = failed.error.message;
      finish_if_over();
      return;
    }
    answer_ = left();
    answer_->failure = failure_of(failed.error, come_back_hint(order_));
  }

  void handle(const Interrupted&) {
    answer_ = left();
    context_.note("\nbmcli: detached; the job goes on");
    context_.note(come_back_hint(order_));
  }

  void see_order(const v1::Order& order) {
    order_ = order;
    if (!order.lease().empty() && !log_started_ && !context_.json()) {
      log_started_ = true;
      feed_.follow_log(order.id(), 0);
    }
    if (order.state() == v1::ORDER_STATE_RUNNING && !running_said_) {
      running_said_ = true;
      status_.clear();
      say_running();
    } else if (order.state() < v1::ORDER_STATE_RUNNING) {
      status_.show(order.id() + ": " + state_cell(order).text);
    }
    finish_if_over();
  }

  void say_running() {
    context_.note(order_.id() + " runs on " + printable(order_.node()) + " (" +
                  std::to_string(order_.gpus()) + " × " + printable(gpu_text(order_.gpu())) +
                  ") until " + time_text(order_.end_unix_ms()) + " at the latest");
    if (environment_.in_terminal) {
      context_.note("Ctrl-C leaves it running");
    }
  }

  void finish_if_over() {
    if (order_.state() != v1::ORDER_STATE_ENDED) {
      return;
    }
    if (!log_started_ || log_complete_) {
      finish();
    } else if (!log_until_) {
      log_until_ = Clock::now() + kLogGrace;
    }
  }

  void finish() {
    status_.clear();
    answer_.emplace();
    answer_->document.set("order", to_json(order_));
    if (!log_problem_.empty()) {
      context_.note("bmcli: log: " + printable(log_problem_));
    }
    if (!context_.json()) {
      say_end();
    }
    if (succeeded(order_)) {
      return;
    }
    const bool never_leased = order_.lease().empty();
    answer_->failure = never_leased ? Failure{ExitCode::Refused, "order_ended",
                                              order_.id() + ": " + end_text(order_), ""}
                                    : Failure{ExitCode::JobFailed, "job_failed",
                                              order_.id() + " did not succeed: " + end_text(order_),
                                              image_hint(context_, order_)};
  }

  void say_end() {
    const std::string& currency = order_.currency();
    context_.note(order_.id() + " has ended: " + printable(end_text(order_)));
    if (!order_.lease().empty()) {
      const std::int64_t ran_ms = order_.billed_from_unix_ms() == 0
                                      ? 0
                                      : order_.end_unix_ms() - order_.billed_from_unix_ms();
      context_.note("ran " + span_text(ran_ms) + ", billed " + span_text(order_.billed_ms()) +
                    ": " + money_text(order_.charge_micros(), currency) + " of at most " +
                    money_text(order_.quote_micros(), currency) + " quoted; it costs nothing more");
    }
  }

  Answer left() const {
    Answer answer;
    answer.document.set("order", to_json(order_)).set("detached", true);
    return answer;
  }

  Context& context_;
  Environment& environment_;
  v1::Order order_;
  StatusLine status_;
  LogPrinter printer_;
  Feed feed_;
  bool running_said_ = false;
  bool log_started_ = false;
  bool log_complete_ = false;
  std::string log_problem_;
  std::optional<Clock::time_point> log_until_;  // set once the order has ended
  std::optional<Answer> answer_;
};

}  // namespace

std::string come_back_hint(const v1::Order& order) {
  return "  its log:  bmcli logs -f " + order.id() + "\n  its end:  bmcli wait " + order.id() +
         "\n  end it:   bmcli stop " + order.id();
}

Answer follow_job(Context& context, const v1::Order& placed) {
  return JobFollower(context, placed).run();
}

}  // namespace bmgpu::cli
