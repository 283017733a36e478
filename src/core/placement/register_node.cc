#include <algorithm>
#include <set>

#include "core/handlers.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kUuidMax = 96;      // bytes
constexpr std::size_t kModelMax = 128;    // bytes
constexpr std::size_t kRecordsMax = 256;  // GPUs ever seen on one node
constexpr std::int64_t kAmountMax = std::int64_t{1} << 40;

std::optional<Reason> check_fields(const RegisterNode& command) {
  const auto bad = [](std::string detail) {
    return Reason{ReasonCode::OutOfRange, std::move(detail)};
  };
  if (command.node.is_none() || command.owner.is_none() || command.site.is_none()) {
    return bad("a node has an id, an owner and a site");
  }
  if (std::ssize(command.gpus) > Limits::kGpusPerNodeMax) {
    return bad("a node has at most " + std::to_string(Limits::kGpusPerNodeMax) + " GPUs");
  }
  const NodeCapacity& capacity = command.capacity;
  for (const std::int64_t amount :
       {capacity.cpu_millis, capacity.memory_mib, capacity.scratch_mib}) {
    if (amount < 0 || amount > kAmountMax) {
      return bad("CPU, memory and scratch are 0 to " + std::to_string(kAmountMax));
    }
  }
  if (command.owner_floor < Price() || command.owner_floor > Limits::kPriceMax) {
    return bad("an owner's floor is 0 to " + std::to_string(Limits::kPriceMax.count()) +
               " micro-units per GPU-slot");
  }
  std::set<std::string> uuids;
  for (const GpuDescription& gpu : command.gpus) {
    if (gpu.uuid.empty() || gpu.uuid.size() > kUuidMax || !uuids.insert(gpu.uuid).second) {
      return bad("each GPU has a UUID of its own of 1 to " + std::to_string(kUuidMax) + " bytes");
    }
    if (gpu.spec.model.empty() || gpu.spec.model.size() > kModelMax || gpu.spec.memory_mib < 1 ||
        gpu.spec.memory_mib > kAmountMax) {
      return bad("a GPU has a model name of 1 to " + std::to_string(kModelMax) +
                 " bytes, and memory");
    }
  }
  return std::nullopt;
}

std::optional<Reason> check_gpu_is_elsewhere(const State& state, const RegisterNode& command) {
  for (const GpuDescription& gpu : command.gpus) {
    const auto known = state.gpu_of_uuid.find(gpu.uuid);
    if (known == state.gpu_of_uuid.end()) {
      continue;
    }
    const NodeId node = state.node_of_gpu.at(known->second);
    if (node == command.node) {
      continue;
    }
    const auto& gpus = state.nodes.at(node).gpus;
    const bool is_there = std::any_of(gpus.begin(), gpus.end(), [&](const GpuRecord& record) {
      return record.id == known->second && record.named;
    });
    if (is_there) {
      return Reason{ReasonCode::GpuInUse, "GPU " + gpu.uuid + " is registered by node-" +
                                              std::to_string(node.value()) +
                                              "; that node must report without it first"};
    }
  }
  return std::nullopt;
}

std::optional<Reason> check_known_node(const NodeRecord& node, const RegisterNode& command) {
  if ((!node.leases.empty() || node.booked > 0) &&
      (node.owner != command.owner || node.site != command.site)) {
    return Reason{ReasonCode::GpuInUse,
                  "owner and site cannot change while leases run or are booked"};
  }
  std::size_t records = command.gpus.size();
  for (const GpuRecord& gpu : node.gpus) {
    const bool is_named =
        std::any_of(command.gpus.begin(), command.gpus.end(),
                    [&](const GpuDescription& one) { return one.uuid == gpu.uuid; });
    if (!is_named && !gpu.lease.is_none()) {
      return Reason{ReasonCode::GpuInUse, "the inventory lacks GPU " + gpu.uuid + ", which lease-" +
                                              std::to_string(gpu.lease.value()) + " holds"};
    }
    records += is_named ? 0 : 1;
  }
  if (records > kRecordsMax) {
    return Reason{ReasonCode::LimitReached, "the node has shown too many different GPUs"};
  }
  return std::nullopt;
}

// Gives out ids for classes and GPUs that are new.
class Inventory {
 public:
  explicit Inventory(const State& state) : state_(state), next_id_(state.next_id) {}

  ClassId class_of(const GpuClassSpec& spec, std::vector<Event>& events) {
    for (const auto& [id, record] : state_.classes) {
      if (record.spec == spec) {
        return id;
      }
    }
    for (const Event& event : events) {
      const auto& defined = std::get<ClassDefined>(event);
      if (defined.spec == spec) {
        return defined.id;
      }
    }
    const ClassId id(next_id_++);
    events.push_back(ClassDefined{id, spec});
    return id;
  }

  RegisteredGpu gpu_of(const GpuDescription& gpu, ClassId gpu_class) {
    const auto known = state_.gpu_of_uuid.find(gpu.uuid);
    if (known == state_.gpu_of_uuid.end()) {
      return RegisteredGpu{GpuId(next_id_++), gpu_class, gpu.uuid};
    }
    for (const GpuRecord& record : state_.nodes.at(state_.node_of_gpu.at(known->second)).gpus) {
      if (record.id == known->second && !record.lease.is_none()) {
        gpu_class = record.gpu_class;  // what was sold stays what it is until the lease is over
      }
    }
    return RegisteredGpu{known->second, gpu_class, gpu.uuid};
  }

 private:
  const State& state_;
  std::uint64_t next_id_;
};

// Whether the node is known exactly like this: then nothing happened.
bool is_unchanged(const NodeRecord& node, const NodeRegistered& event) {
  std::vector<RegisteredGpu> named;
  for (const GpuRecord& gpu : node.gpus) {
    if (gpu.named) {
      named.push_back(RegisteredGpu{gpu.id, gpu.gpu_class, gpu.uuid});
    }
  }
  return !node.lost && node.owner == event.owner && node.site == event.site &&
         node.capacity == event.capacity && node.driver == event.driver &&
         node.owner_floor == event.owner_floor && named == event.gpus;
}

}  // namespace

Decision handle(const State& state, const Stamp&, const RegisterNode& command) {
  if (auto reason = check_fields(command)) {
    return refused(std::move(*reason));
  }
  if (command.driver == Driver::Simulated && state.policy.drivers_accepted == Driver::Real) {
    return refused(ReasonCode::DriverNotAccepted,
                   "the node's driver is simulated; this market takes real ones only");
  }
  if (auto reason = check_gpu_is_elsewhere(state, command)) {
    return refused(std::move(*reason));
  }
  const auto known = state.nodes.find(command.node);
  if (known == state.nodes.end() && std::ssize(state.nodes) >= Limits::kNodesMax) {
    return refused(ReasonCode::LimitReached, "the market has as many nodes as it can hold");
  }
  if (known != state.nodes.end()) {
    if (auto reason = check_known_node(known->second, command)) {
      return refused(std::move(*reason));
    }
  }
  Decision decision = done();
  Inventory inventory(state);
  NodeRegistered event{command.node, command.owner,  command.site,       command.capacity,
                       {},           command.driver, command.owner_floor};
  for (const GpuDescription& gpu : command.gpus) {
    const ClassId gpu_class = inventory.class_of(gpu.spec, decision.events);
    event.gpus.push_back(inventory.gpu_of(gpu, gpu_class));
  }
  std::sort(event.gpus.begin(), event.gpus.end(),
            [](const RegisteredGpu& a, const RegisteredGpu& b) { return a.id < b.id; });
  if (known != state.nodes.end() && is_unchanged(known->second, event)) {
    return done();
  }
  decision.events.push_back(std::move(event));
  return decision;
}

}  // namespace bmgpu::core
