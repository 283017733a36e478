// A JSON document to print. Numbers are integers; keys keep the order in which they were set.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bmgpu::cli {

class Json {
 public:
  Json() = default;  // null
  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  Json(std::same_as<bool> auto value) : value_(value) {}  // NOLINT(*-explicit-*)
  Json(std::signed_integral auto value)                   // NOLINT(*-explicit-*)
      : value_(static_cast<std::int64_t>(value)) {}
  Json(std::unsigned_integral auto value)  // NOLINT(*-explicit-*)
      requires(!std::same_as<decltype(value), bool>)
      : value_(static_cast<std::uint64_t>(value)) {}
  // Invalid UTF-8 is replaced by U+FFFD, so that every document is valid.
  Json(std::string_view text);                                     // NOLINT(*-explicit-*)
  Json(const std::string& text) : Json(std::string_view(text)) {}  // NOLINT(*-explicit-*)
  Json(const char* text) : Json(std::string_view(text)) {}         // NOLINT(*-explicit-*)
  Json(const std::vector<std::string>& texts);                     // NOLINT(*-explicit-*)

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }

  // Adds or replaces a member. REQUIRES: this is an object.
  Json& set(std::string_view key, Json value);
  // The member, or nullptr. REQUIRES: this is an object.
  const Json* find(std::string_view key) const;
  // REQUIRES: this is an array.
  Json& push(Json value);

  // One line, no trailing newline.
  std::string dump() const;

 private:
  using Object = std::vector<std::pair<std::string, Json>>;
  using Array = std::vector<Json>;
  explicit Json(Object members) : value_(std::move(members)) {}
  explicit Json(Array elements) : value_(std::move(elements)) {}
  void append_to(std::string& out) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, std::string, Array, Object>
      value_;
};

}  // namespace bmgpu::cli
