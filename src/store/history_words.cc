#include "store/history_words.h"

#include <variant>

#include "store/schema_enums.h"

namespace bmgpu::store {
namespace {

// Visitors, so that a kind which core adds does not compile until it has a name.
struct KindName {
  std::string_view operator()(const core::PolicySet&) const { return "policy-set"; }
  std::string_view operator()(const core::ClassDefined&) const { return "class-defined"; }
  std::string_view operator()(const core::NodeRegistered&) const { return "node-registered"; }
  std::string_view operator()(const core::NodeReadyChanged&) const { return "node-ready-changed"; }
  std::string_view operator()(const core::NodeListingChanged&) const {
    return "node-listing-changed";
  }
  std::string_view operator()(const core::NodeLeftSupply&) const { return "node-left-supply"; }
  std::string_view operator()(const core::NodeLost&) const { return "node-lost"; }
  std::string_view operator()(const core::NodeRemoved&) const { return "node-removed"; }
  std::string_view operator()(const core::GpuStateChanged&) const { return "gpu-state-changed"; }
  std::string_view operator()(const core::QuoteIssued&) const { return "quote-issued"; }
  std::string_view operator()(const core::QuoteClosed&) const { return "quote-closed"; }
  std::string_view operator()(const core::OrderQueued&) const { return "order-queued"; }
  std::string_view operator()(const core::OrderClosed&) const { return "order-closed"; }
  std::string_view operator()(const core::LeaseGranted&) const { return "lease-granted"; }
  std::string_view operator()(const core::LeaseRunning&) const { return "lease-running"; }
  std::string_view operator()(const core::LeaseExtended&) const { return "lease-extended"; }
  std::string_view operator()(const core::LeaseEnding&) const { return "lease-ending"; }
  std::string_view operator()(const core::LeaseEnded&) const { return "lease-ended"; }
  std::string_view operator()(const core::LeaseStarted&) const { return "lease-started"; }
  std::string_view operator()(const core::LeaseMoved&) const { return "lease-moved"; }
  std::string_view operator()(const core::LeaseDelayed&) const { return "lease-delayed"; }
  std::string_view operator()(const core::LeaseCancelled&) const { return "lease-cancelled"; }
  std::string_view operator()(const core::JobGiven&) const { return "job-given"; }
  std::string_view operator()(const core::DemandCurveSet&) const { return "demand-curve-set"; }
  std::string_view operator()(const core::SlotClosed&) const { return "slot-closed"; }
  std::string_view operator()(const core::PricesMoved&) const { return "prices-moved"; }
  std::string_view operator()(const core::CountersSet&) const { return "counters-set"; }
  std::string_view operator()(const core::OrdersReviewed&) const { return "orders-reviewed"; }
};

struct Subject {
  std::string operator()(const core::PolicySet&) const { return "market"; }
  std::string operator()(const core::ClassDefined& e) const { return id_of("class", e.id.value()); }
  std::string operator()(const core::NodeRegistered& e) const { return of_node(e.node); }
  std::string operator()(const core::NodeReadyChanged& e) const { return of_node(e.node); }
  std::string operator()(const core::NodeListingChanged& e) const { return of_node(e.node); }
  std::string operator()(const core::NodeLeftSupply& e) const { return of_node(e.node); }
  std::string operator()(const core::NodeLost& e) const { return of_node(e.node); }
  std::string operator()(const core::NodeRemoved& e) const { return of_node(e.node); }
  std::string operator()(const core::GpuStateChanged& e) const {
    return id_of("gpu", e.gpu.value());
  }
  std::string operator()(const core::QuoteIssued& e) const {
    return id_of("quote", e.quote.id.value());
  }
  std::string operator()(const core::QuoteClosed& e) const { return id_of("quote", e.id.value()); }
  std::string operator()(const core::OrderQueued& e) const {
    return id_of("order", e.order.id.value());
  }
  std::string operator()(const core::OrderClosed& e) const { return id_of("order", e.id.value()); }
  std::string operator()(const core::LeaseGranted& e) const { return of_lease(e.lease.id); }
  std::string operator()(const core::LeaseRunning& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseExtended& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseEnding& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseEnded& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseStarted& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseMoved& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseDelayed& e) const { return of_lease(e.id); }
  std::string operator()(const core::LeaseCancelled& e) const { return of_lease(e.id); }
  std::string operator()(const core::JobGiven& e) const { return of_lease(e.id); }
  std::string operator()(const core::DemandCurveSet& e) const {
    return id_of("class", e.gpu_class.value());
  }
  std::string operator()(const core::SlotClosed&) const { return "market"; }
  std::string operator()(const core::CountersSet&) const { return "market"; }
  std::string operator()(const core::PricesMoved&) const { return "market"; }
  std::string operator()(const core::OrdersReviewed&) const { return "market"; }

  static std::string of_node(NodeId id) { return id_of("node", id.value()); }
  static std::string of_lease(LeaseId id) { return id_of("lease", id.value()); }
};

// "END_REASON_JOB_EXITED" <-> "job-exited", for the prefix "END_REASON_".
std::string word_of_name(std::string_view name, std::string_view prefix) {
  std::string word(name.substr(prefix.size()));
  for (char& c : word) {
    c = c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  return word;
}

std::string name_of_word(std::string_view word, std::string_view prefix) {
  std::string name(prefix);
  for (const char c : word) {
    name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : '?';
  }
  return name;
}

constexpr std::string_view kEndReason = "END_REASON_";
constexpr std::string_view kRestartPolicy = "RESTART_POLICY_";

}  // namespace

std::string_view kind_name(const core::Event& event) { return std::visit(KindName(), event); }

bool is_in_timeline(const core::Event& event) {
  return !std::holds_alternative<core::CountersSet>(event) &&
         !std::holds_alternative<core::OrdersReviewed>(event);
}

std::string id_of(std::string_view prefix, std::uint64_t id) {
  return std::string(prefix) + "-" + std::to_string(id);
}

std::string subject_of(const core::Event& event) { return std::visit(Subject(), event); }

std::string word_of(core::EndReason reason) {
  return word_of_name(v1::EndReason_Name(to_schema(reason)), kEndReason);
}

std::string word_of(core::RestartPolicy restart) {
  return word_of_name(v1::RestartPolicy_Name(to_schema(restart)), kRestartPolicy);
}

std::optional<core::EndReason> end_reason_of(std::string_view word) {
  v1::EndReason value = v1::END_REASON_NONE;
  return v1::EndReason_Parse(name_of_word(word, kEndReason), &value) ? from_schema(value)
                                                                     : std::nullopt;
}

std::optional<core::RestartPolicy> restart_policy_of(std::string_view word) {
  v1::RestartPolicy value = v1::RESTART_POLICY_NONE;
  return v1::RestartPolicy_Parse(name_of_word(word, kRestartPolicy), &value) ? from_schema(value)
                                                                             : std::nullopt;
}

}  // namespace bmgpu::store
