#include "wire/ids.h"

#include <charconv>
#include <optional>

namespace bmgpu::wire {
namespace {

constexpr std::size_t kIdBytesMax = 64;

template <typename T>
constexpr std::string_view prefix_of() {
  if constexpr (std::is_same_v<T, AccountId>) return "account";
  if constexpr (std::is_same_v<T, NodeId>) return "node";
  if constexpr (std::is_same_v<T, GpuId>) return "gpu";
  if constexpr (std::is_same_v<T, ClassId>) return "class";
  if constexpr (std::is_same_v<T, SiteId>) return "site";
  if constexpr (std::is_same_v<T, QuoteId>) return "quote";
  if constexpr (std::is_same_v<T, OrderId>) return "order";
  if constexpr (std::is_same_v<T, LeaseId>) return "lease";
  if constexpr (std::is_same_v<T, TokenId>) return "token";
  if constexpr (std::is_same_v<T, OfferId>) return "offer";
}

// A decimal number from 1 to 2^64 - 1 without leading zeros.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || text[0] < '1' || text[0] > '9') {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "prefix-rest" → rest.
std::optional<std::string_view> strip(std::string_view text, std::string_view prefix) {
  if (text.size() <= prefix.size() + 1 || text.size() > kIdBytesMax || !text.starts_with(prefix) ||
      text[prefix.size()] != '-') {
    return std::nullopt;
  }
  return text.substr(prefix.size() + 1);
}

template <typename T>
std::optional<T> try_parse(std::string_view text) {
  const auto rest = strip(text, prefix_of<T>());
  if (!rest) {
    return std::nullopt;
  }
  if constexpr (std::is_same_v<T, OfferId>) {
    const std::size_t hyphen = rest->find('-');
    if (hyphen == std::string_view::npos) {
      return std::nullopt;
    }
    const auto node = parse_number(rest->substr(0, hyphen));
    const auto gpu_class = parse_number(rest->substr(hyphen + 1));
    if (!node || !gpu_class) {
      return std::nullopt;
    }
    return OfferId{NodeId(*node), ClassId(*gpu_class)};
  } else {
    const auto number = parse_number(*rest);
    return number ? std::optional<T>(T(*number)) : std::nullopt;
  }
}

// Ids come from people: shown back cut and in quotes, so that the message stays one short line.
std::string quoted(std::string_view text) {
  if (text.size() <= kIdBytesMax) {
    return "'" + std::string(text) + "'";
  }
  return "'" + std::string(text.substr(0, kIdBytesMax)) + "…'";
}

template <typename T>
std::string print(T id) {
  return std::string(prefix_of<T>()) + "-" + std::to_string(id.value());
}

template <typename T>
bool try_any(std::string_view text, std::optional<AnyId>& found) {
  if (const auto id = try_parse<T>(text)) {
    found = *id;
  }
  return found.has_value();
}

template <typename... T>
std::optional<AnyId> try_all(std::string_view text, const std::variant<T...>*) {
  std::optional<AnyId> found;
  static_cast<void>((try_any<T>(text, found) || ...));
  return found;
}

}  // namespace

std::string to_text(AccountId id) { return print(id); }
std::string to_text(NodeId id) { return print(id); }
std::string to_text(GpuId id) { return print(id); }
std::string to_text(ClassId id) { return print(id); }
std::string to_text(SiteId id) { return print(id); }
std::string to_text(QuoteId id) { return print(id); }
std::string to_text(OrderId id) { return print(id); }
std::string to_text(LeaseId id) { return print(id); }
std::string to_text(TokenId id) { return print(id); }
std::string to_text(OfferId id) {
  return "offer-" + std::to_string(id.node.value()) + "-" + std::to_string(id.gpu_class.value());
}

template <typename T>
Result<T> parse_id(std::string_view text) {
  if (const auto id = try_parse<T>(text)) {
    return *id;
  }
  const std::string kind(prefix_of<T>());
  const std::string example = std::is_same_v<T, OfferId> ? "offer-2-1" : kind + "-17";
  return Error{ErrorCode::InvalidArgument,
               quoted(text) + " is no " + kind + " id; one looks like " + example};
}

template Result<AccountId> parse_id<AccountId>(std::string_view);
template Result<NodeId> parse_id<NodeId>(std::string_view);
template Result<GpuId> parse_id<GpuId>(std::string_view);
template Result<ClassId> parse_id<ClassId>(std::string_view);
template Result<SiteId> parse_id<SiteId>(std::string_view);
template Result<QuoteId> parse_id<QuoteId>(std::string_view);
template Result<OrderId> parse_id<OrderId>(std::string_view);
template Result<LeaseId> parse_id<LeaseId>(std::string_view);
template Result<TokenId> parse_id<TokenId>(std::string_view);
template Result<OfferId> parse_id<OfferId>(std::string_view);

Result<AnyId> parse_any_id(std::string_view text) {
  if (const auto id = try_all(text, static_cast<const AnyId*>(nullptr))) {
    return *id;
  }
  return Error{ErrorCode::InvalidArgument,
               quoted(text) + " is no id; ids look like order-9, lease-17, quote-3 or node-2"};
}

}  // namespace bmgpu::wire
