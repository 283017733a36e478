// The few rtnetlink requests that a job's network needs. A socket belongs to the network namespace
// in which it was opened, whichever thread uses it later.
#pragma once

#include <cstdint>
#include <string>

#include "agent/runtime/files.h"
#include "base/result.h"

namespace bmgpu::agent {

class Netlink {
 public:
  // In the network namespace of the calling thread.
  static Result<Netlink> open();

  // A veth pair: `name` here, `peer_name` in the namespace of that descriptor. AlreadyExists: a
  // link of that name is here.
  Result<void> add_veth(const std::string& name, const std::string& peer_name, int peer_namespace);
  // The number of a link here.
  Result<int> index_of(const std::string& name);
  Result<void> add_address(int index, std::uint32_t ipv4, int prefix_bits);
  Result<void> set_up(int index);
  Result<void> add_default_route(int index, std::uint32_t gateway_ipv4);

 private:
  explicit Netlink(Fd fd) : fd_(std::move(fd)) {}
  Result<std::string> exchange(const std::string& request, const char* what);
  Fd fd_;
};

}  // namespace bmgpu::agent
