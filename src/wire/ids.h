// Ids as people see them: a prefix, a hyphen and the decimal number, "lease-17". Parsing is strict:
// one text for one id, so leading zeros, signs, blanks and zero are InvalidArgument.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.h"
#include "base/result.h"

namespace bmgpu::wire {

using TokenId = Id<struct TokenIdTag>;  // of an API token; the edge knows it as a bare number

// What a node offers of one class: "offer-2-1" is node 2, class 1.
struct OfferId {
  NodeId node;
  ClassId gpu_class;
  friend constexpr auto operator<=>(const OfferId&, const OfferId&) = default;
};

std::string to_text(AccountId id);  // account-1
std::string to_text(NodeId id);     // node-2
std::string to_text(GpuId id);      // gpu-12
std::string to_text(ClassId id);    // class-1
std::string to_text(SiteId id);     // site-1
std::string to_text(QuoteId id);    // quote-3
std::string to_text(OrderId id);    // order-9
std::string to_text(LeaseId id);    // lease-17
std::string to_text(TokenId id);    // token-4
std::string to_text(OfferId id);    // offer-2-1

// T is one of the types above. A well-formed id of another kind says which kind is expected.
template <typename T>
Result<T> parse_id(std::string_view text);

using AnyId = std::variant<AccountId, NodeId, GpuId, ClassId, SiteId, QuoteId, OrderId, LeaseId,
                           TokenId, OfferId>;

// For requests that take ids of several kinds.
Result<AnyId> parse_any_id(std::string_view text);

}  // namespace bmgpu::wire
