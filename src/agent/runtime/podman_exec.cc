#include <poll.h>

#include "agent/runtime/libpod.h"
#include "agent/runtime/podman.h"

namespace bmgpu::agent {

namespace json = boost::json;
using Clock = HttpConnection::Clock;

Result<std::string> Podman::create_exec(const std::string& container,
                                        const std::vector<std::string>& command, bool terminal,
                                        const std::string& working_dir) const {
  json::object body{{"AttachStdin", true},
                    {"AttachStdout", true},
                    {"AttachStderr", true},
                    {"Tty", terminal},
                    {"Cmd", json::array(command.begin(), command.end())}};
  if (!working_dir.empty()) {
    body["WorkingDir"] = working_dir;
  }
  if (terminal) {
    body["Env"] = json::array{"TERM=xterm-256color"};
  }
  Result<HttpResponse> response =
      call(socket_, "POST", "containers/" + url_encode(container) + "/exec", json::serialize(body),
           deadline_);
  if (!response.ok()) {
    return response.error();
  }
  const Result<json::value> value = parse_json(response->body);
  if (!value.ok() || !value->is_object()) {
    return Error{ErrorCode::Internal, "the container engine gave the session no id"};
  }
  return text_at(value->as_object(), "Id");
}

Result<HttpConnection> Podman::start_exec(const std::string& id, bool terminal, int rows,
                                          int columns) const {
  const Clock::time_point deadline = Clock::now() + deadline_;
  Result<HttpConnection> connection = HttpConnection::connect(socket_, deadline);
  if (!connection.ok()) {
    return connection;
  }
  json::object body{{"Detach", false}, {"Tty", terminal}};
  if (terminal) {
    body["h"] = rows;
    body["w"] = columns;
  }
  HttpRequest request;
  request.method = "POST";
  request.target = libpod_base() + "exec/" + url_encode(id) + "/start";
  request.body = json::serialize(body);
  request.upgrade = true;
  Result<HttpResponse> response = connection->exchange(request, deadline);
  if (!response.ok()) {
    return response.error();
  }
  if (response->status >= 300) {
    return failure(*response);
  }
  return connection;
}

Result<void> Podman::resize_exec(const std::string& id, int rows, int columns) const {
  Result<HttpResponse> response =
      call(socket_, "POST",
           "exec/" + url_encode(id) + "/resize?h=" + std::to_string(rows) +
               "&w=" + std::to_string(columns),
           {}, deadline_);
  if (!response.ok()) {
    return response.error();
  }
  return {};
}

Result<int> Podman::exec_exit_code(const std::string& id) const {
  const Clock::time_point end = Clock::now() + deadline_;
  while (true) {
    Result<json::value> value = get(socket_, "exec/" + url_encode(id) + "/json", deadline_);
    if (!value.ok()) {
      return value.error();
    }
    if (value->is_object() && !flag_at(value->as_object(), "Running")) {
      return static_cast<int>(number_at(value->as_object(), "ExitCode"));
    }
    if (Clock::now() >= end) {
      return Error{ErrorCode::DeadlineExceeded, "the command's exit code was not noted in time"};
    }
    ::poll(nullptr, 0, 10);
  }
}

std::string Podman::archive_target(const std::string& container, const std::string& path) {
  return libpod_base() + "containers/" + url_encode(container) +
         "/archive?path=" + url_encode(path);
}

}  // namespace bmgpu::agent
