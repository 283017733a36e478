// The openb trace (Alibaba cluster-trace-gpu-v2023): nodes with GPUs and the pods that want them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/cluster.h"

namespace bmgpu::sim {

struct OpenbLimits {
  static constexpr std::size_t kNodesMax = 10'000;
  static constexpr std::int64_t kGpusPerNodeMax = 64;
  static constexpr std::size_t kModelsMax = 64;  // of nodes and requests together
  static constexpr std::int64_t kAmountMax = std::int64_t{1} << 40;  // thousandths or MiB
};

struct OpenbTrace {
  std::vector<std::string> models;
  std::vector<Node> nodes;               // with GPUs, by name
  std::vector<Request> requests;         // distinct ones, in order of Request
  std::vector<std::size_t> pods;         // index of each pod's request, by name of the pod
  std::int64_t gpu_thousandths() const;  // of all nodes
};

// Reads a node list (columns sn, cpu_milli, memory_mib, gpu, model) and a pod list (name,
// cpu_milli, memory_mib, num_gpu, gpu_milli and, if it is there, gpu_spec: "A|B" are the models
// that will do). Other columns, times among them, are not read. Nodes without GPU are left out, as
// the published protocol does. InvalidArgument names file, line and column.
Result<OpenbTrace> read_openb_trace(const std::string& node_file, const std::string& pod_file);

}  // namespace bmgpu::sim
