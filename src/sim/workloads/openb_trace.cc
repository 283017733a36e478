#include "sim/workloads/openb_trace.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/csv.h"

namespace bmgpu::sim {
namespace {

// Columns by name, the first error kept.
class Columns {
 public:
  explicit Columns(const CsvReader& reader) : reader_(reader) {}
  std::size_t operator()(const char* name) {
    const Result<std::size_t> column = reader_.column(name);
    if (column) {
      return *column;
    }
    error_ = error_ ? error_ : column.error();
    return 0;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const CsvReader& reader_;
  std::optional<Error> error_;
};

// The model's index, a new one if need be; absent: too many models.
std::optional<std::int32_t> model_index(std::vector<std::string>& models, std::string_view name) {
  const auto it = std::find(models.begin(), models.end(), name);
  if (it == models.end()) {
    if (models.size() == OpenbLimits::kModelsMax) {
      return std::nullopt;
    }
    models.emplace_back(name);
    return static_cast<std::int32_t>(models.size() - 1);
  }
  return static_cast<std::int32_t>(it - models.begin());
}

std::string too_many_models() {
  return "more than " + std::to_string(OpenbLimits::kModelsMax) + " different models";
}

Result<void> read_nodes(const std::string& path, OpenbTrace& trace) {
  Result<CsvReader> opened = CsvReader::open(path);
  if (!opened) {
    return opened.error();
  }
  CsvReader& csv = *opened;
  Columns column(csv);
  const std::size_t name = column("sn");
  const std::size_t cpu = column("cpu_milli");
  const std::size_t memory = column("memory_mib");
  const std::size_t gpus = column("gpu");
  const std::size_t model = column("model");
  if (column.error()) {
    return *column.error();
  }
  while (csv.next()) {
    Node node;
    node.name = csv.text(name);
    node.cpu_millis = csv.number(cpu, 0, OpenbLimits::kAmountMax);
    node.memory_mib = csv.number(memory, 0, OpenbLimits::kAmountMax);
    node.gpus.assign(static_cast<std::size_t>(csv.number(gpus, 0, OpenbLimits::kGpusPerNodeMax)),
                     1000);
    if (node.gpus.empty()) {
      continue;
    }
    const auto index = model_index(trace.models, csv.text(model));
    if (!index) {
      csv.fail(model, too_many_models());
    } else if (trace.nodes.size() == OpenbLimits::kNodesMax) {
      csv.fail(name, "more than " + std::to_string(OpenbLimits::kNodesMax) + " nodes with GPUs");
    } else {
      node.model = *index;
      trace.nodes.push_back(std::move(node));
    }
  }
  if (csv.failed()) {
    return csv.error();
  }
  if (trace.nodes.empty()) {
    return Error{ErrorCode::InvalidArgument, path + ": no node with a GPU"};
  }
  const auto by_name = [](const Node& a, const Node& b) { return a.name < b.name; };
  std::sort(trace.nodes.begin(), trace.nodes.end(), by_name);
  const auto twice =
      std::adjacent_find(trace.nodes.begin(), trace.nodes.end(),
                         [](const Node& a, const Node& b) { return a.name == b.name; });
  if (twice != trace.nodes.end()) {
    return Error{ErrorCode::InvalidArgument, path + ": two nodes are named '" + twice->name + "'"};
  }
  return {};
}

std::uint64_t read_models(CsvReader& csv, std::size_t column, std::vector<std::string>& models) {
  std::string_view names = csv.text(column);
  std::uint64_t mask = 0;
  while (!names.empty()) {
    const std::size_t bar = names.find('|');
    const auto index = model_index(models, names.substr(0, bar));
    if (!index) {
      csv.fail(column, too_many_models());
      return mask;
    }
    mask |= std::uint64_t{1} << *index;
    names.remove_prefix(bar == std::string_view::npos ? names.size() : bar + 1);
  }
  return mask;
}

struct Pod {
  std::string name;
  Request request;
};

Result<std::vector<Pod>> read_pods(const std::string& path, std::vector<std::string>& models) {
  Result<CsvReader> opened = CsvReader::open(path);
  if (!opened) {
    return opened.error();
  }
  CsvReader& csv = *opened;
  Columns column(csv);
  const std::size_t name = column("name");
  const std::size_t cpu = column("cpu_milli");
  const std::size_t memory = column("memory_mib");
  const std::size_t gpus = column("num_gpu");
  const std::size_t share = column("gpu_milli");
  const bool has_spec = csv.has_column("gpu_spec");
  const std::size_t spec = has_spec ? column("gpu_spec") : 0;
  if (column.error()) {
    return *column.error();
  }
  std::vector<Pod> pods;
  while (csv.next()) {
    Request request;
    request.cpu_millis = csv.number(cpu, 0, OpenbLimits::kAmountMax);
    request.memory_mib = csv.number(memory, 0, OpenbLimits::kAmountMax);
    request.gpus = static_cast<std::int32_t>(csv.number(gpus, 0, OpenbLimits::kGpusPerNodeMax));
    if (request.gpus > 0) {
      const std::int64_t least = request.gpus == 1 ? 1 : 1000;
      request.thousandths = static_cast<std::int32_t>(csv.number(share, least, 1000));
      request.models = has_spec ? read_models(csv, spec, models) : 0;
    }
    pods.push_back(Pod{std::string(csv.text(name)), request});
  }
  if (csv.failed()) {
    return csv.error();
  }
  const auto asks_for_gpu = [](const Pod& pod) { return pod.request.gpus > 0; };
  if (std::none_of(pods.begin(), pods.end(), asks_for_gpu)) {
    return Error{ErrorCode::InvalidArgument, path + ": no pod asks for a GPU"};
  }
  std::stable_sort(pods.begin(), pods.end(),
                   [](const Pod& a, const Pod& b) { return a.name < b.name; });
  return pods;
}

}  // namespace

std::int64_t OpenbTrace::gpu_thousandths() const {
  std::int64_t sum = 0;
  for (const Node& node : nodes) {
    sum += node.gpu_thousandths();
  }
  return sum;
}

Result<OpenbTrace> read_openb_trace(const std::string& node_file, const std::string& pod_file) {
  OpenbTrace trace;
  if (const Result<void> nodes = read_nodes(node_file, trace); !nodes) {
    return nodes.error();
  }
  const Result<std::vector<Pod>> pods = read_pods(pod_file, trace.models);
  if (!pods) {
    return pods.error();
  }
  for (const Pod& pod : *pods) {
    trace.requests.push_back(pod.request);
  }
  std::sort(trace.requests.begin(), trace.requests.end());
  trace.requests.erase(std::unique(trace.requests.begin(), trace.requests.end()),
                       trace.requests.end());
  for (const Pod& pod : *pods) {
    const auto it = std::lower_bound(trace.requests.begin(), trace.requests.end(), pod.request);
    trace.pods.push_back(static_cast<std::size_t>(it - trace.requests.begin()));
  }
  return trace;
}

}  // namespace bmgpu::sim
