#include <cctype>
#include <cstdlib>
#include <istream>
#include <ostream>

#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/file.h"
#include "cli/message_json.h"
#include "cli/terminal.h"
#include "wire/json.h"

namespace bmgpu::cli {
namespace {

constexpr std::size_t kEndpointBytesMax = 64 * 1024;
constexpr std::size_t kTokenBytesMax = 4096;
constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells have it

Error mistake(std::string message) { return {ErrorCode::InvalidArgument, std::move(message)}; }

// The machine where bmd runs: its state directory says everything.
Result<MarketConfig> from_state_dir(const std::string& folder) {
  const Result<std::string> text = read_small_file(folder + "/endpoint.json", kEndpointBytesMax);
  if (!text) {
    return Error{text.error().code, text.error().message + "; is bmd running with this state_dir?"};
  }
  Result<wire::JsonObject> endpoint = wire::parse_json_object(*text);
  if (!endpoint) {
    return mistake(folder + "/endpoint.json: " + endpoint.error().message);
  }
  Result<std::string> token = read_token_file(folder + "/operator.token");
  if (!token) {
    return token.error();
  }
  return MarketConfig{(*endpoint)["url"], (*endpoint)["ca_sha256"], std::move(*token)};
}

Result<std::string> ask_token(Context& context) {
  Environment& environment = context.environment();
  if (environment.in_terminal) {
    environment.err << "Token (not shown): " << std::flush;
  }
  std::string text;
  {
    const TerminalMode hidden(environment.in_descriptor, TerminalMode::Kind::Hidden);
    environment.interrupts.on_interrupt([&hidden] {
      hidden.restore();  // or the shell behind us would stay mute
      std::_Exit(kInterruptedExitCode);
    });
    std::getline(environment.in, text);
    environment.interrupts.on_interrupt({});
  }
  if (environment.in_terminal) {
    environment.err << std::endl;
  }
  return read_token(text.substr(0, kTokenBytesMax + 1), "standard input");
}

// Whose certificate is it? Only a person who knows the market's fingerprint can say.
Result<std::string> agreed_ca(Context& context, const std::string& url) {
  Environment& environment = context.environment();
  const std::string advice =
      "compare it with what the market's operator sees (ca_sha256 in bmd's endpoint.json)";
  if (!context.can_ask()) {
    return mistake(
        "an https market needs --ca-sha256 HEX here: nobody can be asked. Get it from the "
        "market's operator (ca_sha256 in bmd's endpoint.json)");
  }
  Result<std::string> shown = environment.fetch_ca_sha256(url);
  if (!shown) {
    return shown;
  }
  context.note("The market at " + url + " shows a certificate authority with SHA-256\n  " + *shown +
               "\n" + advice + ".");
  if (!ask(environment.in, environment.err, "Is it the right one?")) {
    return Error{ErrorCode::Refused, "you did not agree; nothing was written"};
  }
  return shown;
}

Result<std::string> checked_ca(std::string ca) {
  for (char& c : ca) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (ca.size() != 64 || ca.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return mistake("--ca-sha256 is not 64 hex digits");
  }
  return ca;
}

Result<MarketConfig> from_options(Context& context, const Arguments& arguments) {
  MarketConfig market;
  market.url = arguments.operand(0);
  if (market.url.empty()) {
    return mistake("URL is missing: bmcli login URL, or bmcli login --state-dir DIR beside bmd");
  }
  while (market.url.ends_with('/')) {
    market.url.pop_back();
  }
  const bool tls = market.url.starts_with("https://");
  if (!tls && !market.url.starts_with("http://")) {
    return mistake("the URL must start with https:// (or http:// on a loopback address)");
  }
  if (const auto ca = arguments.value("ca-sha256")) {
    Result<std::string> checked = checked_ca(*ca);
    if (!checked) {
      return checked.error();
    }
    market.ca_sha256 = *checked;
  } else if (tls) {
    Result<std::string> agreed = agreed_ca(context, market.url);
    if (!agreed) {
      return agreed.error();
    }
    market.ca_sha256 = *agreed;
  }
  const auto file = arguments.value("token-file");
  Result<std::string> token = file ? read_token_file(*file) : ask_token(context);
  if (!token) {
    return token.error();
  }
  market.token = std::move(*token);
  return market;
}

Answer run_login(Context& context, const Arguments& arguments) {
  const auto state_dir = arguments.value("state-dir");
  if (state_dir && (!arguments.operands().empty() || arguments.has("token-file"))) {
    return usage_failure("--state-dir says everything; leave URL and --token-file out");
  }
  if (context.config_path().empty()) {
    return usage_failure("there is no place for the configuration: set HOME or BMCLI_CONFIG");
  }
  const Result<MarketConfig> market =
      state_dir ? from_state_dir(*state_dir) : from_options(context, arguments);
  if (!market) {
    return market.error();
  }
  Result<std::unique_ptr<wire::Client>> client =
      context.environment().connect({market->url, market->ca_sha256, market->token});
  if (!client) {
    return client.error();
  }
  v1::GetInfoResponse info;
  Result<void> called = (*client)->call(method_path("GetInfo"), v1::GetInfoRequest(), info);
  if (!called) {
    return failure_of(called.error(), "nothing was written");
  }
  if (Result<void> saved = save_config(context.config_path(), *market); !saved) {
    return saved.error();
  }
  const std::string role = enum_word(v1::Role_Name(info.role()), "ROLE_");
  return {"logged in to " + market->url + " as " + info.token_name() + " (" + info.account() +
              ", role " + role + "); written to " + context.config_path() + "\n",
          Json::object()
              .set("url", market->url)
              .set("config", context.config_path())
              .set("market", to_json(info))};
}

}  // namespace

CommandSpec login_command() {
  return {
      .name = "login",
      .summary = "Remember a market and a token, after trying them",
      .description =
          "The token comes from --token-file or standard input, never from the command line,\n"
          "where other users could read it. The file written is readable by you only.\n"
          "$BMCLI_CONFIG names another file; $BMCLI_URL, $BMCLI_CA_SHA256 and\n"
          "$BMCLI_TOKEN_FILE outweigh what it says.",
      .operands = {{.name = "URL", .help = "https://host:port", .required = false}},
      .options = {{.name = "ca-sha256",
                   .value = "HEX",
                   .help = "SHA-256 of the market's certificate authority; the only one trusted"},
                  {.name = "token-file",
                   .value = "FILE",
                   .help = "Holds the token",
                   .completes = Completes::File},
                  {.name = "state-dir",
                   .value = "DIR",
                   .help = "bmd's state directory on this machine: become its operator",
                   .completes = Completes::Folder}},
      .examples = {{"bmcli login https://gpu.example.org:7443 --token-file alice.token",
                    "Shows the certificate authority's fingerprint and asks"},
                   {"bmcli login --state-dir /var/lib/bmd", "On the machine where bmd runs"}},
      .run = run_login};
}

}  // namespace bmgpu::cli
