#include <sys/stat.h>

#include <cstdlib>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

constexpr std::int64_t kSkewMaxMs = 30'000;

enum class Verdict { Ok, Warning, Failed };

struct Check {
  std::string name;
  Verdict verdict = Verdict::Ok;
  std::string detail;
  std::string advice;  // empty when it is fine
};

class Doctor {
 public:
  explicit Doctor(Context& context) : context_(context) {}

  Answer run() {
    if (check_config()) {
      check_authority();
      check_connection();
    }
    return answer();
  }

 private:
  void add(Check check) { checks_.push_back(std::move(check)); }
  void fail(std::string name, const Error& error, std::string advice) {
    if (!failure_) {
      failure_ = failure_of(error, advice);
    }
    add({std::move(name), Verdict::Failed, error.message, std::move(advice)});
  }

  bool check_config() {
    const Result<MarketConfig> config = context_.config();
    const std::string& path = context_.config_path();
    if (!config) {
      fail("configuration", config.error(), "bmcli login URL writes " + path);
      return false;
    }
    config_ = *config;
    struct stat facts {};
    const bool exists = ::stat(path.c_str(), &facts) == 0;
    if (exists && (facts.st_mode & 077) != 0) {
      add({"configuration", Verdict::Warning, path + " can be read by others",
           "chmod 600 " + path + ", and ask for a new token"});
    } else {
      add({"configuration", Verdict::Ok, exists ? path : "from the environment", ""});
    }
    return true;
  }

  // Which certificate authority answers there, whatever we trust.
  void check_authority() {
    if (config_.url.starts_with("http://")) {
      add({"encryption", Verdict::Ok, "none, on this machine only", ""});
      return;
    }
    const Result<std::string> shown = context_.environment().fetch_ca_sha256(config_.url);
    if (!shown) {
      return;  // the connection check says why
    }
    if (*shown != config_.ca_sha256) {
      fail("encryption",
           {ErrorCode::Unavailable, "another certificate authority answers: SHA-256 " + *shown},
           "if the market was set up anew, log in again with its new --ca-sha256; otherwise "
           "somebody "
           "stands between you and it");
      return;
    }
    add({"encryption", Verdict::Ok, "TLS, certificate authority " + shown->substr(0, 16) + "…",
         ""});
  }

  void check_connection() {
    v1::GetInfoResponse info;
    const Result<void> called = context_.call("GetInfo", v1::GetInfoRequest(), info);
    if (!called && called.error().code == ErrorCode::Unauthenticated) {
      add({"connection", Verdict::Ok, config_.url + " answers", ""});
      fail("token", called.error(), "ask the market's operator for a new one: bmcli login URL");
      return;
    }
    if (!called) {
      fail("connection", called.error(),
           "is bmd running at " + config_.url + ", and is the way to it open? Try: curl -k " +
               config_.url + "/healthz");
      return;
    }
    add({"connection", Verdict::Ok, config_.url + " answers", ""});
    add({"token", Verdict::Ok,
         info.token_name() + " (" + info.account() + ", role " +
             enum_word(v1::Role_Name(info.role()), "ROLE_") + ")",
         ""});
    check_clock(info.now_unix_ms());
    check_version(info.version());
  }

  void check_clock(std::int64_t server_unix_ms) {
    const std::int64_t skew = std::abs(server_unix_ms - context_.environment().now().unix_ms());
    if (skew > kSkewMaxMs) {
      add({"clock", Verdict::Warning, "differs from the market's by " + span_text(skew),
           "let NTP set this machine's clock: times shown here are wrong by that much"});
    } else {
      add({"clock", Verdict::Ok, "within " + span_text(kSkewMaxMs) + " of the market's", ""});
    }
  }

  void check_version(const std::string& version) {
    if (version != BMGPU_VERSION) {
      add({"version", Verdict::Warning, "market " + version + ", bmcli " BMGPU_VERSION,
           "install the bmcli of the market's release if something does not work"});
    } else {
      add({"version", Verdict::Ok, version, ""});
    }
  }

  Answer answer() const {
    const Colours colours = context_.out_colours();
    Answer answer;
    Json list = Json::array();
    for (const Check& check : checks_) {
      const char* word = check.verdict == Verdict::Ok        ? "ok"
                         : check.verdict == Verdict::Warning ? "warning"
                                                             : "failed";
      const Style style = check.verdict == Verdict::Ok        ? Style::Green
                          : check.verdict == Verdict::Warning ? Style::Yellow
                                                              : Style::Red;
      answer.text +=
          styled(word, style, colours) + "  " + check.name + ": " + printable(check.detail) + "\n";
      answer.text += check.advice.empty() ? "" : "    → " + printable(check.advice) + "\n";
      list.push(Json::object()
                    .set("name", check.name)
                    .set("verdict", word)
                    .set("detail", check.detail)
                    .set("advice", check.advice.empty() ? Json() : Json(check.advice)));
    }
    answer.document.set("checks", std::move(list));
    answer.failure = failure_;
    return answer;
  }

  Context& context_;
  MarketConfig config_;
  std::vector<Check> checks_;
  std::optional<Failure> failure_;  // of the first check that failed
};

Answer run_doctor(Context& context, const Arguments&) { return Doctor(context).run(); }

}  // namespace

CommandSpec doctor_command() {
  return {.name = "doctor",
          .summary = "Check configuration, connection, token, clock and version, with advice",
          .examples = {{"bmcli doctor", "When something does not work"}},
          .run = run_doctor};
}

}  // namespace bmgpu::cli
