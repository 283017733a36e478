#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/message_json.h"

namespace bmgpu::cli {
namespace {

// Never fails for want of a market: a version is asked for when things do not work.
Answer run_version(Context& context, const Arguments&) {
  Json document = Json::object();
  document.set("version", BMGPU_VERSION);
  std::string text = "bmcli " BMGPU_VERSION "\n";
  v1::GetInfoResponse info;
  const Result<MarketConfig> config = context.config();
  const Result<void> called =
      config ? context.call("GetInfo", v1::GetInfoRequest(), info) : config.error();
  if (called) {
    text += "market " + info.version() + " at " + config->url + "\n";
    text += "you are " + info.token_name() + " (" + info.account() + ", role " +
            enum_word(v1::Role_Name(info.role()), "ROLE_") + ")\n";
    document.set("market", to_json(info).set("url", config->url));
  } else {
    context.note("market: " + called.error().message);
    document.set("market", Json());
  }
  return {std::move(text), std::move(document)};
}

}  // namespace

CommandSpec version_command() {
  return {.name = "version",
          .summary = "Show the versions of bmcli and of the market, and who you are",
          .examples = {{"bmcli version", "Both versions and your role"},
                       {"bmcli version --json | jq -r .version", "bmcli's version, for a script"}},
          .run = run_version};
}

}  // namespace bmgpu::cli
