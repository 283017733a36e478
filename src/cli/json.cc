#include "cli/json.h"

#include <algorithm>

#include "base/check.h"
#include "wire/json.h"

namespace bmgpu::cli {
Json::Json(std::string_view text) : value_(std::string(text)) {}

Json::Json(const std::vector<std::string>& texts) : value_(Array{}) {
  for (const std::string& text : texts) {
    push(text);
  }
}

Json& Json::set(std::string_view key, Json value) {
  auto* members = std::get_if<Object>(&value_);
  check(members != nullptr, "json: set() on something that is not an object");
  const auto found = std::ranges::find(*members, key, &Object::value_type::first);
  if (found != members->end()) {
    found->second = std::move(value);
  } else {
    members->emplace_back(key, std::move(value));
  }
  return *this;
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  check(members != nullptr, "json: find() on something that is not an object");
  const auto found = std::ranges::find(*members, key, &Object::value_type::first);
  return found == members->end() ? nullptr : &found->second;
}

Json& Json::push(Json value) {
  auto* elements = std::get_if<Array>(&value_);
  check(elements != nullptr, "json: push() on something that is not an array");
  elements->push_back(std::move(value));
  return *this;
}

std::string Json::dump() const {
  std::string out;
  append_to(out);
  return out;
}

void Json::append_to(std::string& out) const {
  if (const auto* boolean = std::get_if<bool>(&value_)) {
    out += *boolean ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*integer);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&value_)) {
    out += std::to_string(*natural);
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    wire::append_json_string(out, *text);
  } else if (const auto* elements = std::get_if<Array>(&value_)) {
    out += '[';
    for (std::size_t i = 0; i < elements->size(); ++i) {
      out += i == 0 ? "" : ",";
      (*elements)[i].append_to(out);
    }
    out += ']';
  } else if (const auto* members = std::get_if<Object>(&value_)) {
    out += '{';
    for (std::size_t i = 0; i < members->size(); ++i) {
      out += i == 0 ? "" : ",";
      wire::append_json_string(out, (*members)[i].first);
      out += ':';
      (*members)[i].second.append_to(out);
    }
    out += '}';
  } else {
    out += "null";
  }
}

}  // namespace bmgpu::cli
