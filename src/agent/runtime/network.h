// A job's network: a namespace of its own behind address translation (`--network nat`).
//
// Each job gets a /30 of the node's subnet and a veth pair: eth0 inside, "bmv<n>" outside, where n
// is the /30's number, so the kernel's refusal of a second link of that name is what keeps two jobs
// (of any agent on the host) apart. A job reaches the world, but no other job, not the host beyond
// name service, and no link-local address (cloud metadata). The namespace is a file in the
// attempt's folder; removing it and the container's end remove the link with it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace bmgpu::agent {

// Turns forwarding on and installs the rules of `subnet` ("10.215.0.0/16", always a /16) as one
// nftables table of its own, replacing an older one at once. Idempotent.
Result<void> ensure_nat(const std::string& subnet);
// Removes the table unless a job of any agent on this host still has a link.
Result<void> remove_nat(const std::string& subnet);

// Makes the namespace and its link, and pins it at `path`. The rules of `subnet` are there before
// the link is up, whatever has become of the table since ensure_nat().
Result<void> make_network(const std::string& path, const std::string& subnet);
// Unpins it. A missing one is fine.
Result<void> remove_network(const std::string& path);

}  // namespace bmgpu::agent
