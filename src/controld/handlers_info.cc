#include "bmgpu/v1/market.pb.h"
#include "controld/handlers.h"
#include "controld/market.h"
#include "controld/rpc.h"
#include "controld/token_roles.h"
#include "core/views.h"
#include "wire/ids.h"

namespace bmgpu::controld {
Error refusal(const core::Reason& reason) {
  ErrorCode code = ErrorCode::Refused;
  switch (reason.code) {
    case core::ReasonCode::NoSuchObject:
      code = ErrorCode::NotFound;
      break;
    case core::ReasonCode::OutOfRange:
    case core::ReasonCode::UnknownGpu:
      code = ErrorCode::InvalidArgument;
      break;
    case core::ReasonCode::LimitReached:
      code = ErrorCode::ResourceExhausted;
      break;
    case core::ReasonCode::NodeNameTaken:
      code = ErrorCode::AlreadyExists;
      break;
    default:
      break;
  }
  return Error{code, reason.detail};
}

void add_info_methods(Rpc& rpc, Market& market) {
  Method<v1::GetInfoRequest, v1::GetInfoResponse> get_info;
  get_info.name = "bmgpu.v1.Market/GetInfo";
  get_info.access = Access::AnyToken;
  get_info.run = [&market](Turn& turn, const api::Identity& caller, const v1::GetInfoRequest&) {
    v1::GetInfoResponse response;
    response.set_version(market.parts.version);
    response.set_currency(core::policy(turn.state()).currency);
    response.set_account(wire::to_text(caller.account));
    response.set_role(schema_role(caller.role));
    const std::optional<TokenView> token = market.parts.directory.token(caller.token);
    response.set_token_name(token ? token->name : "");
    response.set_now_unix_ms(turn.now().unix_ms());
    for (const auto& [alias, reference] : market.parts.config.images) {
      (*response.mutable_image_aliases())[alias] = reference;
    }
    response.set_incarnation(turn.incarnation().value());
    return Result<v1::GetInfoResponse>(std::move(response));
  };
  rpc.add(std::move(get_info));
}

}  // namespace bmgpu::controld
