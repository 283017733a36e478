#include "agent/runtime/libpod.h"

#include <boost/system/system_error.hpp>

namespace bmgpu::agent {

namespace json = boost::json;
using Clock = HttpConnection::Clock;

Result<json::value> parse_json(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) {
    return Error{ErrorCode::Internal, "the container engine sent no valid JSON"};
  }
  return value;
}

namespace {

// The engine's words: {"cause":…,"message":…}; the message ends with the cause.
std::string words(const HttpResponse& response) {
  const Result<json::value> value = parse_json(response.body);
  if (value.ok() && value->is_object()) {
    const json::value* message = value->as_object().if_contains("message");
    if (message != nullptr && message->is_string()) {
      return std::string(message->as_string());
    }
  }
  return "HTTP " + std::to_string(response.status) + " " + response.body.substr(0, 300);
}

}  // namespace

Error Podman::failure(const HttpResponse& response) {
  ErrorCode code = ErrorCode::Internal;
  if (response.status == 404) {
    code = ErrorCode::NotFound;
  } else if (response.status == 409) {
    code = ErrorCode::Refused;
  } else if (response.status == 400) {
    code = ErrorCode::InvalidArgument;
  }
  return Error{code, words(response)};
}

Result<HttpResponse> call(const std::string& socket, const std::string& method,
                          const std::string& target, const std::string& body,
                          std::chrono::milliseconds duration) {
  const Clock::time_point deadline = Clock::now() + duration;
  Result<HttpConnection> connection = HttpConnection::connect(socket, deadline);
  if (!connection.ok()) {
    return connection.error();
  }
  HttpRequest request;
  request.method = method;
  request.target = libpod_base() + target;
  request.body = body;
  Result<HttpResponse> response = connection->exchange(request, deadline);
  if (response.ok() && response->status >= 400) {
    return Podman::failure(*response);
  }
  return response;
}

std::string text_at(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}
std::int64_t number_at(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? value->as_int64() : 0;
}
bool flag_at(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->as_bool();
}
std::vector<std::string> texts_at(const json::object& object, const char* name) {
  std::vector<std::string> out;
  const json::value* value = object.if_contains(name);
  if (value != nullptr && value->is_array()) {
    for (const json::value& item : value->as_array()) {
      if (item.is_string()) {
        out.emplace_back(item.as_string());
      }
    }
  }
  return out;
}
const json::object& object_at(const json::object& object, const char* name) {
  static const json::object kEmpty;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->as_object() : kEmpty;
}

Result<json::value> get(const std::string& socket, const std::string& target,
                        std::chrono::milliseconds duration) {
  Result<HttpResponse> response = call(socket, "GET", target, {}, duration);
  if (!response.ok()) {
    return response.error();
  }
  return parse_json(response->body);
}

}  // namespace bmgpu::agent
