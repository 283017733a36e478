#include "agent/runtime/podman.h"

#include <algorithm>
#include <utility>

#include "agent/runtime/libpod.h"
#include "agent/runtime/log_tail.h"
#include "agent/runtime/podman_spec.h"

namespace bmgpu::agent {

namespace json = boost::json;
using Clock = HttpConnection::Clock;

Podman::Podman(std::string socket, Duration deadline)
    : socket_(std::move(socket)), deadline_(deadline) {}

Result<std::string> Podman::version() const {
  Result<json::value> value = get(socket_, "version", deadline_);
  if (!value.ok()) {
    return value.error();
  }
  return value->is_object() ? text_at(value->as_object(), "Version") : std::string();
}

Result<std::string> Podman::create(const ContainerSpec& spec) const {
  Result<HttpResponse> response =
      call(socket_, "POST", "containers/create", container_json(spec), deadline_);
  if (!response.ok()) {
    return response.error();
  }
  Result<json::value> value = parse_json(response->body);
  if (!value.ok() || !value->is_object()) {
    return Error{ErrorCode::Internal, "the container engine gave the new container no id"};
  }
  return text_at(value->as_object(), "Id");
}

Result<void> Podman::start(const std::string& container) const {
  Result<HttpResponse> response =
      call(socket_, "POST", "containers/" + url_encode(container) + "/start", {}, deadline_);
  if (!response.ok()) {
    return response.error();
  }
  return {};
}

Result<ContainerState> Podman::inspect(const std::string& container) const {
  Result<json::value> value =
      get(socket_, "containers/" + url_encode(container) + "/json", deadline_);
  if (!value.ok()) {
    return value.error();
  }
  if (!value->is_object()) {
    return Error{ErrorCode::Internal, "the container engine sent no container"};
  }
  const json::object& state = object_at(value->as_object(), "State");
  ContainerState out;
  out.id = text_at(value->as_object(), "Id");
  out.status = text_at(state, "Status");
  out.running = flag_at(state, "Running") || flag_at(state, "Paused");
  out.oom_killed = flag_at(state, "OOMKilled");
  out.pid = static_cast<int>(number_at(state, "Pid"));
  out.conmon_pid = static_cast<int>(number_at(state, "ConmonPid"));
  out.exit_code = static_cast<int>(number_at(state, "ExitCode"));
  out.finished_unix_ms = parse_rfc3339_ms(text_at(state, "FinishedAt")).value_or(0);
  out.error = text_at(state, "Error");
  out.cgroup_path = text_at(state, "CgroupPath");
  return out;
}

Result<void> Podman::remove(const std::string& container) const {
  Result<HttpResponse> response =
      call(socket_, "DELETE", "containers/" + url_encode(container) + "?v=true", {}, deadline_);
  if (!response.ok() && response.error().code != ErrorCode::NotFound) {
    return response.error();
  }
  return {};
}

Result<std::vector<ContainerSummary>> Podman::list(const Labels& labels) const {
  json::array wanted;
  for (const auto& [name, value] : labels) {
    wanted.emplace_back(name + "=" + value);
  }
  const std::string filters = json::serialize(json::object{{"label", wanted}});
  Result<json::value> value =
      get(socket_, "containers/json?all=true&filters=" + url_encode(filters), deadline_);
  if (!value.ok()) {
    return value.error();
  }
  std::vector<ContainerSummary> out;
  if (!value->is_array()) {
    return out;  // "null" when there is none
  }
  for (const json::value& item : value->as_array()) {
    if (!item.is_object()) {
      continue;
    }
    const json::object& object = item.as_object();
    const std::vector<std::string> names = texts_at(object, "Names");
    ContainerSummary summary{
        text_at(object, "Id"), names.empty() ? "" : names.front(), text_at(object, "State"), {}};
    for (const auto& label : object_at(object, "Labels")) {
      if (label.value().is_string()) {
        summary.labels[std::string(label.key())] = std::string(label.value().as_string());
      }
    }
    out.push_back(std::move(summary));
  }
  return out;
}

Result<bool> Podman::image_exists(const std::string& reference) const {
  Result<HttpResponse> response =
      call(socket_, "GET", "images/" + url_encode(reference) + "/exists", {}, deadline_);
  if (!response.ok()) {
    if (response.error().code == ErrorCode::NotFound) {
      return false;
    }
    return response.error();
  }
  return true;
}

Result<ImageConfig> Podman::inspect_image(const std::string& reference) const {
  Result<json::value> value = get(socket_, "images/" + url_encode(reference) + "/json", deadline_);
  if (!value.ok()) {
    return value.error();
  }
  ImageConfig out;
  if (value->is_object()) {
    const json::object& config = object_at(value->as_object(), "Config");
    out.entrypoint = texts_at(config, "Entrypoint");
    out.command = texts_at(config, "Cmd");
    out.user = text_at(config, "User");
  }
  return out;
}

Result<std::vector<std::string>> Podman::images() const {
  Result<json::value> value = get(socket_, "images/json", deadline_);
  if (!value.ok()) {
    return value.error();
  }
  std::vector<std::string> out;
  if (value->is_array()) {
    for (const json::value& item : value->as_array()) {
      if (item.is_object()) {
        for (std::string& name : texts_at(item.as_object(), "RepoTags")) {
          out.push_back(std::move(name));
        }
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<void> Podman::pull(const std::string& reference, Duration deadline,
                          const std::atomic<bool>& cancel,
                          const std::function<void(const std::string&)>& on_progress) const {
  const Clock::time_point end = Clock::now() + deadline;
  Result<HttpConnection> connection = HttpConnection::connect(socket_, end);
  if (!connection.ok()) {
    return connection.error();
  }
  connection->cancel_by(cancel);
  HttpRequest request;
  request.method = "POST";
  request.target = libpod_base() + "images/pull?reference=" + url_encode(reference);
  std::string pending;
  std::string error;
  // One JSON document a line: {"stream":"…"}, {"error":"…"}, {"images":[…]}.
  const auto on_line = [&](const std::string& line) {
    const Result<json::value> value = parse_json(line);
    if (value.ok() && value->is_object()) {
      if (std::string text = text_at(value->as_object(), "error"); !text.empty()) {
        error = std::move(text);
      } else if (text = text_at(value->as_object(), "stream"); !text.empty()) {
        on_progress(text.substr(0, text.find('\n')));
      }
    }
  };
  Result<HttpResponse> response = connection->exchange(request, end, [&](std::string_view bytes) {
    pending += bytes;
    for (std::size_t line = pending.find('\n'); line != std::string::npos;
         line = pending.find('\n')) {
      on_line(pending.substr(0, line));
      pending.erase(0, line + 1);
    }
  });
  if (!response.ok()) {
    return response.error();
  }
  on_line(pending);
  if (response->status >= 400) {
    return failure(*response);
  }
  if (!error.empty()) {
    return Error{ErrorCode::NotFound, error};
  }
  return {};
}

}  // namespace bmgpu::agent
