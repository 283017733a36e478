// What placement sees of nodes and requests. Every pass works on these and on nothing else, so that
// bmd and bmsim decide with the same code. Values; no pass keeps a reference.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace bmgpu::core {

// A whole GPU, in the unit that shares of it are counted in.
inline constexpr std::int32_t kWholeGpu = 1000;

// A request. Two equal ones are the same to every pass.
struct RequestShape {
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::int32_t gpus = 0;         // 0 = CPU and memory only
  std::int32_t thousandths = 0;  // of each GPU; below 1000 only if gpus is 1; 0 if gpus is 0
  std::uint64_t models = 0;      // bit m: model m will do; 0 = any
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;

  std::int64_t gpu_thousandths() const { return std::int64_t{gpus} * thousandths; }
  bool is_share() const { return gpus == 1 && thousandths < kWholeGpu; }
  bool takes_model(std::int32_t model) const { return models == 0 || (models >> model & 1) != 0; }
};

// What is left of a node.
struct NodeShape {
  std::int32_t model = 0;  // 0 to 63
  std::int64_t cpu_millis = 0;
  std::int64_t memory_mib = 0;
  std::span<const std::int32_t> gpus;  // thousandths left of each GPU, in any order
};

// A kind of request and how often it comes. A list of them is the mix that placement keeps room
// for.
struct TypicalRequest {
  RequestShape request;
  std::int64_t count = 0;
};

}  // namespace bmgpu::core
