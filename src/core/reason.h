// Why: every refusal, wait and placement carries a Reason from this closed list.
#pragma once

#include <string>

namespace bmgpu::core {

enum class ReasonCode {
  UnknownGpu,          // no listed class has all the words; detail names those that exist
  TooManyGpus,         // no node has that many of the class
  NotEnoughMemory,     // no class has that much memory per GPU
  NoCapacityNow,       // it would fit, but not now
  NodeResources,       // GPUs are free, but not the CPU, memory or scratch beside them
  PriceAboveLimit,     // detail names the price now
  NoSupply,            // the class has no healthy listed GPU
  QuoteExpired,
  QuoteMismatch,       // the quote is for something else
  NoSuchObject,        // not found, or another tenant's
  AlreadyEnded,
  LeaseTooLong,        // an extension beyond Limits::kLeaseMax
  GpusTakenAfter,      // an extension is possible only until the time in detail
  OutOfRange,          // a count or duration beyond Limits; detail names the range
  LimitReached,        // a Limits maximum
  NodeNameTaken,
  DriverNotAccepted,   // a simulated driver on a market that takes real ones only
  NodeDraining,
  NodeInUse,           // a node that lives cannot be removed or start anew
  GpuInUse,            // an inventory without a GPU that a lease holds
};

struct Reason {
  ReasonCode code;
  std::string detail;  // one sentence for people; states what would help where something would
  bool operator==(const Reason&) const = default;
};

}  // namespace bmgpu::core
