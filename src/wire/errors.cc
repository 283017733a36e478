#include "wire/errors.h"

#include <array>

#include "wire/json.h"

namespace bmgpu::wire {
namespace {

struct Row {
  ErrorCode code;
  std::string_view connect;
  int status;
};

constexpr std::array kRows = {
    Row{ErrorCode::InvalidArgument, "invalid_argument", 400},
    Row{ErrorCode::NotFound, "not_found", 404},
    Row{ErrorCode::AlreadyExists, "already_exists", 409},
    Row{ErrorCode::Refused, "failed_precondition", 400},
    Row{ErrorCode::Unauthenticated, "unauthenticated", 401},
    Row{ErrorCode::PermissionDenied, "permission_denied", 403},
    Row{ErrorCode::ResourceExhausted, "resource_exhausted", 429},
    Row{ErrorCode::Unavailable, "unavailable", 503},
    Row{ErrorCode::DeadlineExceeded, "deadline_exceeded", 504},
    Row{ErrorCode::DataLoss, "data_loss", 500},
    Row{ErrorCode::Internal, "internal", 500},
};

const Row& row_of(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) {
      return row;
    }
  }
  check_failed("errors: a code is missing in the table");
}

}  // namespace

std::string_view connect_code(ErrorCode code) { return row_of(code).connect; }

int http_status(ErrorCode code) { return row_of(code).status; }

ErrorCode error_code_of_connect(std::string_view code) {
  for (const Row& row : kRows) {
    if (row.connect == code) {
      return row.code;
    }
  }
  if (code == "unimplemented") {
    return ErrorCode::NotFound;
  }
  if (code == "out_of_range") {
    return ErrorCode::InvalidArgument;
  }
  if (code == "canceled" || code == "aborted") {
    return ErrorCode::Unavailable;
  }
  return ErrorCode::Internal;
}

ErrorCode error_code_of_http(int status) {
  switch (status) {
    case 400:
      return ErrorCode::InvalidArgument;
    case 401:
      return ErrorCode::Unauthenticated;
    case 403:
      return ErrorCode::PermissionDenied;
    case 404:
      return ErrorCode::NotFound;
    case 409:
      return ErrorCode::AlreadyExists;
    case 413:
    case 429:
    case 431:
      return ErrorCode::ResourceExhausted;
    case 408:
    case 504:
      return ErrorCode::DeadlineExceeded;
    case 502:
    case 503:
      return ErrorCode::Unavailable;
    default:
      return ErrorCode::Internal;
  }
}

std::string error_json(std::string_view connect_code, std::string_view message) {
  std::string json = "{\"code\":";
  append_json_string(json, connect_code);
  json += ",\"message\":";
  append_json_string(json, message);
  json += '}';
  return json;
}

std::string error_json(const Error& error) {
  return error_json(connect_code(error.code), error.message);
}

Error parse_error_json(std::string_view json, int status) {
  const Result<JsonObject> object = parse_json_object(json);
  if (object.ok()) {
    const auto code = object->find("code");
    if (code != object->end()) {
      const auto message = object->find("message");
      return Error{error_code_of_connect(code->second),
                   message == object->end() ? code->second : message->second};
    }
  }
  return Error{error_code_of_http(status),
               "the server answered with HTTP status " + std::to_string(status)};
}

}  // namespace bmgpu::wire
