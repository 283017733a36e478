// The Standard Workload Format (cs.huji.ac.il/labs/parallel/workload): lines of 18 numbers with
// blanks between them; lines that begin with ';' are comments; -1 is unknown.
#pragma once

#include "sim/replay/job_trace.h"

namespace bmgpu::sim {

// As read_job_trace() with JobTraceFormat::Swf.
Result<std::vector<TraceJob>> read_swf_trace(const std::string& path);

}  // namespace bmgpu::sim
