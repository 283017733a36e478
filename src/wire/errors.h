// The one table between our ErrorCode, the Connect protocol's code and the HTTP status, and the
// JSON form of an error. docs/reference/errors.md shows it to people.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace bmgpu::wire {

// "not_found", as in the Connect protocol.
std::string_view connect_code(ErrorCode code);

// 404, as the Connect protocol maps it.
int http_status(ErrorCode code);

// The code of a Connect error; codes that we never send map onto the nearest of ours, anything
// else onto Internal.
ErrorCode error_code_of_connect(std::string_view code);

// For an HTTP error answer without a Connect error in its body (a proxy's, for instance).
ErrorCode error_code_of_http(int status);

// {"code":"not_found","message":"…"}
std::string error_json(const Error& error);

// The same object under another Connect code, for answers that ErrorCode does not know
// ("unimplemented").
std::string error_json(std::string_view connect_code, std::string_view message);

// Inverse of error_json. Anything that is not such an object is an Error made from `status`.
Error parse_error_json(std::string_view json, int status);

}  // namespace bmgpu::wire
