#include "bmgpu/v1/agent.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "controld/validate.h"
#include "controld/views.h"
#include "wire/ids.h"
#include "wire/join_token.h"

namespace bmgpu::controld {
namespace {

Result<api::Role> role_of(v1::Role role) {
  switch (role) {
    case v1::ROLE_TENANT:
      return api::Role::Tenant;
    case v1::ROLE_OWNER:
      return api::Role::Owner;
    case v1::ROLE_OPERATOR:
      return api::Role::Operator;
    case v1::ROLE_NODE_JOIN:
      return api::Role::NodeJoin;
    default:
      return Error{ErrorCode::InvalidArgument,
                   "the role of a token must be tenant, owner, operator or node-join"};
  }
}

// A join token's node, site and name have defaults; everything is checked.
Result<void> complete(v1::CreateTokenRequest& request) {
  const bool join = request.role() == v1::ROLE_NODE_JOIN;
  if (join && request.name().empty()) {
    request.set_name("join-" + request.node());
  }
  if (join && request.site().empty()) {
    request.set_site("default");
  }
  const Result<api::Role> role = role_of(request.role());
  Result<void> checked =
      role ? check_name("the token's name", request.name()) : Result<void>(role.error());
  if (checked && join) {
    checked = check_name("the node's name", request.node());
    checked = checked ? check_name("the site", request.site()) : checked;
  } else if (checked && (!request.node().empty() || !request.site().empty())) {
    checked = Error{ErrorCode::InvalidArgument, "node and site are for the role node-join only"};
  }
  return checked;
}

Result<v1::CreateTokenResponse> create(Turn& turn, Market& market, const api::Identity& caller,
                                       const v1::CreateTokenRequest& request) {
  TokenSpec spec;
  spec.role = role_of(request.role()).value();
  spec.name = request.name();
  spec.node_name = request.node();
  spec.site_name = request.site();
  spec.lifetime = Duration(request.ttl_ms());
  if (!request.account().empty()) {
    const Result<AccountId> account = wire::parse_id<AccountId>(request.account());
    if (!account) {
      return account.error();
    }
    spec.account = *account;
  }
  if (spec.role == api::Role::NodeJoin) {
    if (Result<void> free = check_node_name_free(turn, market, spec.node_name); !free) {
      return free.error();
    }
  }
  Directory::Documents documents;
  const Result<TokenView> token =
      market.parts.directory.create_token(spec, caller.account, turn.now(), documents);
  if (!token) {
    return token.error();
  }
  put_all(turn, std::move(documents));
  v1::CreateTokenResponse response;
  *response.mutable_token() = token_view(*token, turn.now());
  return response;
}

// The secret is in no stored answer: it is derived anew whenever the answer is given.
void reveal(const Market& market, v1::CreateTokenResponse& response) {
  const v1::Token& token = response.token();
  const std::uint64_t id = wire::parse_id<wire::TokenId>(token.id()).value().value();
  if (!market.parts.directory.token(id)) {
    return;  // ended and gone since
  }
  const std::string secret = market.parts.directory.secret_text(id);
  if (token.role() != v1::ROLE_NODE_JOIN) {
    response.set_secret(secret);
    return;
  }
  v1::JoinToken join;
  join.set_url(market.endpoints.url);
  join.set_heartbeat(market.endpoints.heartbeat);
  join.set_ca_sha256(market.endpoints.ca_sha256);
  join.set_node(token.node());
  join.set_owner(token.account());
  join.set_secret(secret);
  response.set_secret(wire::encode_join_token(join));
}

Result<v1::Token> revoke(Turn& turn, Market& market, const v1::RevokeTokenRequest& request) {
  const Result<wire::TokenId> id = wire::parse_id<wire::TokenId>(request.id());
  const std::optional<TokenView> known =
      id.ok() ? market.parts.directory.token(id->value())
              : market.parts.directory.token_by_name(request.id(), turn.now());
  if (!known) {
    return Error{ErrorCode::NotFound,
                 "there is no token " + request.id() + "; bmcli token list shows them"};
  }
  Directory::Documents documents;
  const Result<TokenView> revoked =
      market.parts.directory.revoke_token(known->id, turn.now(), documents);
  if (!revoked) {
    return revoked.error();
  }
  put_all(turn, std::move(documents));
  turn.after_commit([drop = market.parts.drop_token, id = known->id](const Result<void>& durable) {
    if (durable) {
      drop(id);
    }
  });
  return token_view(*revoked, turn.now());
}

}  // namespace

void add_token_methods(Rpc& rpc, Market& market) {
  Method<v1::CreateTokenRequest, v1::CreateTokenResponse> create_method;
  create_method.name = "bmgpu.v1.Market/CreateToken";
  create_method.access = Access::Operators;
  create_method.effect = Effect::Mutation;
  create_method.prepare = [](const api::Identity&, v1::CreateTokenRequest& request) {
    return complete(request);
  };
  create_method.run = [&market](Turn& turn, const api::Identity& caller,
                                const v1::CreateTokenRequest& request) {
    return create(turn, market, caller, request);
  };
  create_method.reveal = [&market](v1::CreateTokenResponse& response) { reveal(market, response); };
  rpc.add(std::move(create_method));

  Method<v1::ListTokensRequest, v1::ListTokensResponse> list;
  list.name = "bmgpu.v1.Market/ListTokens";
  list.access = Access::Operators;
  list.run = [&market](Turn& turn, const api::Identity&,
                       const v1::ListTokensRequest&) -> Result<v1::ListTokensResponse> {
    v1::ListTokensResponse response;
    for (const TokenView& token : market.parts.directory.tokens()) {
      *response.add_tokens() = token_view(token, turn.now());
    }
    return response;
  };
  rpc.add(std::move(list));

  Method<v1::RevokeTokenRequest, v1::Token> revoke_method;
  revoke_method.name = "bmgpu.v1.Market/RevokeToken";
  revoke_method.access = Access::Operators;
  revoke_method.effect = Effect::Mutation;
  revoke_method.run = [&market](Turn& turn, const api::Identity&,
                                const v1::RevokeTokenRequest& request) {
    return revoke(turn, market, request);
  };
  rpc.add(std::move(revoke_method));
}

}  // namespace bmgpu::controld
