#include "sim/chaos/event_words.h"

namespace bmgpu::sim {
namespace {

struct Word {
  const char* name;
  std::uint64_t subject;
};

struct Words {
  Word operator()(const core::PolicySet& e) const {
    return {"policy-set", e.policy.version.value()};
  }
  Word operator()(const core::ClassDefined& e) const { return {"class-defined", e.id.value()}; }
  Word operator()(const core::NodeRegistered& e) const {
    return {"node-registered", e.node.value()};
  }
  Word operator()(const core::NodeReadyChanged& e) const {
    return {e.ready ? "node-ready" : "node-unready", e.node.value()};
  }
  Word operator()(const core::NodeListingChanged& e) const {
    return {"listing-changed", e.node.value()};
  }
  Word operator()(const core::NodeRemoved& e) const { return {"node-removed", e.node.value()}; }
  Word operator()(const core::NodeLost& e) const { return {"node-lost", e.node.value()}; }
  Word operator()(const core::GpuStateChanged& e) const {
    return {e.state == core::GpuState::Free         ? "gpu-free"
            : e.state == core::GpuState::Sanitizing ? "gpu-sanitizing"
                                                    : "gpu-failed",
            e.gpu.value()};
  }
  Word operator()(const core::QuoteIssued& e) const { return {"quote-issued", e.quote.id.value()}; }
  Word operator()(const core::QuoteClosed& e) const { return {"quote-closed", e.id.value()}; }
  Word operator()(const core::OrderQueued& e) const { return {"order-queued", e.order.id.value()}; }
  Word operator()(const core::OrderClosed& e) const { return {"order-closed", e.id.value()}; }
  Word operator()(const core::LeaseGranted& e) const {
    return {"lease-granted", e.lease.id.value()};
  }
  Word operator()(const core::LeaseRunning& e) const { return {"lease-running", e.id.value()}; }
  Word operator()(const core::LeaseExtended& e) const { return {"lease-extended", e.id.value()}; }
  Word operator()(const core::LeaseEnding& e) const { return {"lease-ending", e.id.value()}; }
  Word operator()(const core::LeaseEnded& e) const { return {"lease-ended", e.id.value()}; }
  Word operator()(const core::LeaseStarted& e) const { return {"lease-started", e.id.value()}; }
  Word operator()(const core::LeaseMoved& e) const { return {"lease-moved", e.id.value()}; }
  Word operator()(const core::LeaseDelayed& e) const { return {"lease-delayed", e.id.value()}; }
  Word operator()(const core::LeaseCancelled& e) const { return {"lease-cancelled", e.id.value()}; }
  Word operator()(const core::JobGiven& e) const { return {"job-given", e.id.value()}; }
  Word operator()(const core::DemandCurveSet&) const { return {"demand-curve-set", 0}; }
  Word operator()(const core::SlotClosed&) const { return {"slot-closed", 0}; }
  Word operator()(const core::CountersSet&) const { return {"counters-set", 0}; }
  Word operator()(const core::NodeLeftSupply& e) const {
    return {"node-left-supply", e.node.value()};
  }
  Word operator()(const core::PricesMoved&) const { return {"prices-moved", 0}; }
  Word operator()(const core::OrdersReviewed&) const { return {"orders-reviewed", 0}; }
};

}  // namespace

const char* event_name(const core::Event& event) { return std::visit(Words(), event).name; }

std::uint64_t event_subject(const core::Event& event) { return std::visit(Words(), event).subject; }

}  // namespace bmgpu::sim
