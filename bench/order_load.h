// Closed-loop order load over raw keep-alive connections: each sends its next order when the last
// one is answered. One thread, bodies encoded beforehand, so that the client costs little beside
// bmd.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bmgpu::bench {

struct LoadOptions {
  std::string host = "127.0.0.1";
  std::string port;
  std::vector<std::string> tokens;  // used in turn by the connections
  std::string body;                 // a PlaceOrderRequest, binary
  std::string key_prefix;           // makes idempotency keys unique among loads
  std::size_t connections = 1;
  std::chrono::nanoseconds warm_up{};
  std::chrono::nanoseconds duration{};
};

struct LoadResult {
  std::uint64_t answered = 0;  // with success, in the measured time
  std::uint64_t failed = 0;
  double per_second = 0;
  std::int64_t p50_us = 0;
  std::int64_t p99_us = 0;
};

LoadResult run_load(const LoadOptions& options);

}  // namespace bmgpu::bench
