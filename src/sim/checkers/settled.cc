#include "sim/checkers/settled.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/views.h"

namespace bmgpu::sim {
namespace {

std::string text(const char* what, std::uint64_t id, const char* problem) {
  return std::string(what) + "-" + std::to_string(id) + " " + problem;
}

bool has_words(const core::GpuClassSpec& spec, const std::string& words) {
  std::string model = spec.model;
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::istringstream stream(words);
  std::string word;
  while (stream >> word) {
    if (model.find(word) == std::string::npos) {
      return false;
    }
  }
  return true;
}

bool resources_fit(const core::NodeRecord& node, const core::Resources& asked) {
  const auto fits = [&](std::int64_t want, std::int64_t whole, std::int64_t used) {
    const std::int64_t part = want > 0 ? want : whole * asked.gpus / node.gpus_named;
    return used + part <= whole;
  };
  return fits(asked.cpu_millis, node.capacity.cpu_millis, node.used.cpu_millis) &&
         fits(asked.memory_mib, node.capacity.memory_mib, node.used.memory_mib) &&
         fits(asked.scratch_mib, node.capacity.scratch_mib, node.used.scratch_mib);
}

bool could_start(const core::State& state, const core::NodeRecord& node, const core::Order& order) {
  if (!node.ready || node.lost || node.listing != core::NodeListing::Offered) {
    return false;
  }
  for (const auto& [id, record] : state.classes) {
    const bool right = has_words(record.spec, order.resources.gpu_words) &&
                       record.spec.memory_mib >= order.resources.gpu_memory_mib_min;
    const auto free = std::count_if(node.gpus.begin(), node.gpus.end(), [&](const auto& gpu) {
      return gpu.gpu_class == id && gpu.state == core::GpuState::Free;
    });
    if (right && free >= order.resources.gpus && resources_fit(node, order.resources)) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> unsettled_node(const core::NodeRecord& node) {
  const std::uint64_t id = node.id.value();
  if (!node.ready || node.lost) {
    return text("node", id, "is not ready");
  }
  if (node.listing != core::NodeListing::Offered) {
    return text("node", id, "is still drained");
  }
  for (const core::GpuRecord& gpu : node.gpus) {
    if (gpu.state != core::GpuState::Free && gpu.state != core::GpuState::Leased) {
      return text("GPU", gpu.id.value(),
                  gpu.state == core::GpuState::Failed ? "counts as failed" : "is not cleaned");
    }
  }
  return std::nullopt;
}

std::optional<std::string> unsettled_lease(const core::Lease& lease, const Containers& containers) {
  const std::uint64_t id = lease.id.value();
  switch (lease.state) {
    case core::LeaseState::Ending:
      return text("lease", id, "does not end");
    case core::LeaseState::Preparing:
      return text("lease", id, "does not get ready");
    case core::LeaseState::Cancelled:
      return std::nullopt;  // only its fee is open, until its time is over
    case core::LeaseState::Booked:
      return lease.delayed ? std::optional(text("lease", id, "does not start")) : std::nullopt;
    case core::LeaseState::Held:
    case core::LeaseState::Running:
      break;
  }
  return containers.is_running(lease.id) ? std::nullopt
                                         : std::optional(text("lease", id, "has no job that runs"));
}

std::optional<std::string> unsettled_order(const core::State& state, const core::Order& order,
                                           Instant now) {
  const auto view = core::find_order(state, order.id, now);
  if (!view || !view->waiting_reason) {
    return text("order", order.id.value(), "waits for no reason");
  }
  const bool by_price = view->waiting_reason->code == core::ReasonCode::PriceAboveLimit;
  if (by_price && order.price_limit == Price()) {
    return text("order", order.id.value(), "waits for a price that it did not ask for");
  }
  const bool fits = std::any_of(state.nodes.begin(), state.nodes.end(), [&](const auto& entry) {
    return could_start(state, entry.second, order);
  });
  if (fits != by_price) {
    return text("order", order.id.value(),
                fits ? "waits although a node could take it" : "waits for its price only");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unsettled(const core::State& state, const Containers& containers,
                                     Instant now) {
  for (const auto& [id, node] : state.nodes) {
    if (auto problem = unsettled_node(node)) {
      return problem;
    }
  }
  for (const auto& [id, lease] : state.leases) {
    if (auto problem = unsettled_lease(lease, containers)) {
      return problem;
    }
  }
  if (state.review_due) {
    return "orders are still to be looked at";
  }
  for (const auto& [id, order] : state.waiting) {
    if (auto problem = unsettled_order(state, order, now)) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace bmgpu::sim
