// One libpod call, and reading its JSON answer, whose members may be absent or null. For podman*.cc
// alone: it is the only header that brings Boost.JSON.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/runtime/http.h"
#include "agent/runtime/podman.h"
#include "base/result.h"

namespace bmgpu::agent {

inline std::string libpod_base() { return "/v4.0.0/libpod/"; }

Result<boost::json::value> parse_json(const std::string& text);

// An answer of 400 and above is an error with the engine's words. `target` comes after the base.
Result<HttpResponse> call(const std::string& socket, const std::string& method,
                          const std::string& target, const std::string& body,
                          std::chrono::milliseconds duration);
Result<boost::json::value> get(const std::string& socket, const std::string& target,
                               std::chrono::milliseconds duration);

std::string text_at(const boost::json::object& object, const char* name);
std::int64_t number_at(const boost::json::object& object, const char* name);
bool flag_at(const boost::json::object& object, const char* name);
std::vector<std::string> texts_at(const boost::json::object& object, const char* name);
const boost::json::object& object_at(const boost::json::object& object, const char* name);

}  // namespace bmgpu::agent
