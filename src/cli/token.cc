#include "bmgpu/v1/market.pb.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/format.h"
#include "cli/message_json.h"
#include "cli/values.h"

namespace bmgpu::cli {
namespace {

v1::Role role_of(const std::string& word) {
  if (word == "owner") {
    return v1::ROLE_OWNER;
  }
  if (word == "operator") {
    return v1::ROLE_OPERATOR;
  }
  return word == "node-join" ? v1::ROLE_NODE_JOIN : v1::ROLE_TENANT;
}

std::string role_text(v1::Role role) { return enum_word(v1::Role_Name(role), "ROLE_"); }

Result<v1::CreateTokenRequest> create_request(const Arguments& arguments) {
  v1::CreateTokenRequest request;
  request.set_role(role_of(arguments.value("role").value_or("")));
  request.set_name(arguments.value("name").value_or(""));
  request.set_account(arguments.value("account").value_or(""));
  request.set_node(arguments.value("node").value_or(""));
  request.set_site(arguments.value("site").value_or(""));
  const Result<std::optional<std::int64_t>> ttl = duration_ms_option(arguments, "ttl");
  if (!ttl) {
    return ttl.error();
  }
  request.set_ttl_ms(ttl->value_or(0));
  const bool join = request.role() == v1::ROLE_NODE_JOIN;
  if (!arguments.has("role") || request.name().empty()) {
    return Error{ErrorCode::InvalidArgument, "--role and --name are needed"};
  }
  if (join && request.node().empty()) {
    return Error{ErrorCode::InvalidArgument,
                 "--node is missing: the name of the node that may join with this token"};
  }
  if (!join && (arguments.has("node") || arguments.has("site"))) {
    return Error{ErrorCode::InvalidArgument, "--node and --site go with --role node-join only"};
  }
  return request;
}

Answer run_create(Context& context, const Arguments& arguments) {
  const Result<v1::CreateTokenRequest> request = create_request(arguments);
  if (!request) {
    return request.error();
  }
  v1::CreateTokenResponse response;
  if (Result<void> called = context.mutate("CreateToken", *request, response); !called) {
    return called.error();
  }
  const v1::Token& token = response.token();
  const std::string end = time_text(token.expires_unix_ms());
  context.note(token.id() + " (" + token.name() + ", role " + role_text(token.role()) +
               (end.empty() ? ")" : ", good until " + end + ")"));
  context.note("the secret is shown this once:");
  return {response.secret() + "\n", to_json(response)};
}

std::string tokens_table(const v1::ListTokensResponse& response, Colours colours) {
  Table table({{"TOKEN"},
               {"NAME"},
               {"ROLE"},
               {"ACCOUNT"},
               {"NODE"},
               {"CREATED"},
               {"EXPIRES"},
               {"LAST USED"},
               {"STATE"}});
  for (const v1::Token& token : response.tokens()) {
    table.add({token.id(), token.name(), role_text(token.role()), token.account(), token.node(),
               time_text(token.created_unix_ms()), time_text(token.expires_unix_ms()),
               time_text(token.last_used_unix_ms()),
               Cell(token.state(), token.state() == "live" ? Style::Green : Style::Dim)});
  }
  return table.empty() ? "" : table.text(colours);
}

Answer run_list(Context& context, const Arguments&) {
  v1::ListTokensResponse response;
  Result<void> called = context.call("ListTokens", v1::ListTokensRequest(), response);
  if (!called) {
    return called.error();
  }
  if (response.tokens().empty() && !context.json()) {
    context.note("No token. To make one: bmcli token create --role tenant --name alice");
  }
  return {tokens_table(response, context.out_colours()), to_json(response)};
}

Answer run_revoke(Context& context, const Arguments& arguments) {
  v1::RevokeTokenRequest request;
  request.set_id(arguments.operand(0));
  v1::Token token;
  if (Result<void> called = context.mutate("RevokeToken", request, token); !called) {
    return called.error();
  }
  return {token.id() + " (" + token.name() + ") is revoked\n",
          Json::object().set("token", to_json(token))};
}

}  // namespace

CommandSpec token_command() {
  CommandSpec create{
      .name = "create",
      .summary = "Make a token and print its secret, this once",
      .options = {{.name = "role",
                   .value = "ROLE",
                   .help = "What it may do",
                   .choices = {"tenant", "owner", "operator", "node-join"}},
                  {.name = "name", .value = "NAME", .help = "Lower-case letters, digits, hyphens"},
                  {.name = "account", .value = "ID", .help = "Existing account; default a new one"},
                  {.name = "node", .value = "NAME", .help = "node-join: the node's name"},
                  {.name = "site", .value = "NAME", .help = "node-join: the node's site"},
                  {.name = "ttl",
                   .value = "TIME",
                   .help = "Good for; default no end, and 10m (the most) for node-join"}},
      .examples = {{"bmcli token create --role tenant --name alice > alice.token", "For a tenant"},
                   {"bmcli token create --role node-join --name join-gpu01 --node gpu01",
                    "Lets one node join, once"}},
      .run = run_create};
  CommandSpec list{.name = "list",
                   .summary = "Show all tokens, without their secrets",
                   .examples = {{"bmcli token list", "All tokens"}},
                   .run = run_list};
  CommandSpec revoke{.name = "revoke",
                     .summary = "End a token at once",
                     .operands = {{.name = "TOKEN", .help = "Id or name"}},
                     .examples = {{"bmcli token revoke alice", "By name"}},
                     .run = run_revoke};
  return {.name = "token",
          .summary = "Make, list and revoke tokens (operators)",
          .commands = {std::move(create), std::move(list), std::move(revoke)}};
}

}  // namespace bmgpu::cli
