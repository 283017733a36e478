#include "controld/token_roles.h"

#include "base/check.h"
#include "bmgpu/v1/records.pb.h"

namespace bmgpu::controld {

v1::Role schema_role(api::Role role) {
  switch (role) {
    case api::Role::Tenant:
      return v1::ROLE_TENANT;
    case api::Role::Owner:
      return v1::ROLE_OWNER;
    case api::Role::Operator:
      return v1::ROLE_OPERATOR;
    case api::Role::NodeJoin:
      return v1::ROLE_NODE_JOIN;
    case api::Role::Node:
      return v1::ROLE_NODE;
  }
  check(false, "token roles: unknown role");
  return v1::ROLE_UNSPECIFIED;
}

api::Role api_role(v1::Role role) {
  switch (role) {
    case v1::ROLE_TENANT:
      return api::Role::Tenant;
    case v1::ROLE_OWNER:
      return api::Role::Owner;
    case v1::ROLE_OPERATOR:
      return api::Role::Operator;
    case v1::ROLE_NODE_JOIN:
      return api::Role::NodeJoin;
    case v1::ROLE_NODE:
      return api::Role::Node;
    default:
      check(false, "token roles: a stored token has an unknown role");
      return api::Role::Tenant;
  }
}

std::string_view token_kind(v1::Role role) {
  switch (role) {
    case v1::ROLE_TENANT:
      return "tenant";
    case v1::ROLE_OWNER:
      return "owner";
    case v1::ROLE_OPERATOR:
      return "operator";
    case v1::ROLE_NODE_JOIN:
      return "join";
    default:
      return "node";
  }
}

}  // namespace bmgpu::controld
