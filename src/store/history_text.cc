#include "store/history_text.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/money.h"
#include "store/history_words.h"

namespace bmgpu::store {
namespace {

// "12.50 USD": two to six decimals.
std::string amount(std::int64_t micros, std::string_view currency) {
  const bool is_negative = micros < 0;
  const std::uint64_t size =
      is_negative ? 0 - static_cast<std::uint64_t>(micros) : static_cast<std::uint64_t>(micros);
  std::string fraction = std::to_string(1'000'000 + size % 1'000'000).substr(1);
  while (fraction.size() > 2 && fraction.back() == '0') {
    fraction.pop_back();
  }
  return (is_negative ? "-" : "") + std::to_string(size / 1'000'000) + "." + fraction + " " +
         std::string(currency);
}

// "2026-11-30T18:05:09Z"; a bare number where the calendar ends.
std::string time_of(Instant at) {
  const std::int64_t unix_s = at.unix_ms() / 1000;
  if (unix_s < 0 || unix_s > 253'402'300'799) {
    return std::to_string(at.unix_ms()) + " ms";
  }
  const std::chrono::sys_seconds whole{std::chrono::seconds(unix_s)};
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(whole - day);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return text.data();
}

// "2h", "1h 30m", "45s".
std::string span_of(Duration duration) {
  const std::int64_t total_s = duration.count() / 1000;
  const std::array<std::pair<std::int64_t, const char*>, 3> parts = {
      {{total_s / 3600, "h"}, {total_s / 60 % 60, "m"}, {total_s % 60, "s"}}};
  std::string text;
  for (const auto& [count, unit] : parts) {
    if (count != 0) {
      text += (text.empty() ? "" : " ") + std::to_string(count) + unit;
    }
  }
  return text.empty() ? "0s" : text;
}

std::string gpus_of(std::int64_t gpus, const std::string& words) {
  return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
         (words.empty() ? "" : " (" + words + ")");
}

std::string cause(core::EndReason reason, std::optional<std::int32_t> exit_code,
                  const std::string& detail) {
  return word_of(reason) + (exit_code ? ", exit code " + std::to_string(*exit_code) : "") +
         (detail.empty() ? "" : " (" + detail + ")");
}

// describe() per kind.
struct Describe {
  std::string_view currency;

  std::string operator()(const core::PolicySet& e) const {
    return "market policy " + std::to_string(e.policy.version.value()) + " applies";
  }
  std::string operator()(const core::ClassDefined& e) const {
    return "GPU class " + e.spec.model + ", " + std::to_string(e.spec.memory_mib) + " MiB";
  }
  std::string operator()(const core::NodeRegistered& e) const {
    return "registered with " + gpus_of(static_cast<std::int64_t>(e.gpus.size()), "") +
           (e.driver == core::Driver::Simulated ? ", simulated driver" : "");
  }
  std::string operator()(const core::NodeReadyChanged& e) const {
    return e.ready ? "ready to be offered" : "not ready, so not offered";
  }
  std::string operator()(const core::NodeListingChanged& e) const {
    return e.listing == core::NodeListing::Draining ? "draining: takes no new lease"
                                                    : "offered again";
  }
  std::string operator()(const core::NodeLeftSupply&) const {
    return "its GPUs count as supply no longer";
  }
  std::string operator()(const core::NodeRemoved&) const { return "removed from the market"; }
  std::string operator()(const core::NodeLost& e) const {
    return "lost; its last acknowledged heartbeat was at " + time_of(e.last_acknowledged);
  }
  std::string operator()(const core::GpuStateChanged& e) const {
    switch (e.state) {
      case core::GpuState::Free:
        return "free";
      case core::GpuState::Leased:
        return "leased";
      case core::GpuState::Sanitizing:
        return "sanitizing before it is offered again";
      case core::GpuState::Failed:
        return "failed";
    }
    check_failed("history: no such state of a GPU");
  }
  std::string operator()(const core::QuoteIssued& e) const {
    return gpus_of(e.quote.resources.gpus, e.quote.resources.gpu_words) + " for " +
           span_of(e.quote.duration) + ": at most " + amount(e.quote.total.count(), currency) +
           ", held until " + time_of(e.quote.expires);
  }
  std::string operator()(const core::QuoteClosed&) const { return "taken or expired"; }
  std::string operator()(const core::OrderQueued& e) const {
    return "waits for " + gpus_of(e.order.resources.gpus, e.order.resources.gpu_words) + " for " +
           span_of(e.order.duration);
  }
  std::string operator()(const core::OrderClosed& e) const {
    return "closed without a lease: " + word_of(e.reason);
  }
  std::string operator()(const core::LeaseGranted& e) const {
    const bool placed = !e.lease.allocations.empty() && !e.lease.allocations.back().ranks.empty();
    return gpus_of(e.lease.gpus, "") +
           (placed ? " on " + id_of("node", e.lease.allocations.back().ranks[0].node.value())
                   : "") +
           " until " + time_of(e.lease.end) + "; at most " +
           amount(e.lease.quoted.count(), currency);
  }
  std::string operator()(const core::LeaseRunning& e) const {
    return (e.rank == 0 ? "" : "rank " + std::to_string(e.rank) + " ") + "running since " +
           time_of(e.since);
  }
  std::string operator()(const core::LeaseExtended& e) const {
    return "extended until " + time_of(e.end) + "; at most " + amount(e.quoted.count(), currency);
  }
  std::string operator()(const core::LeaseEnding& e) const {
    return "ending: " + cause(e.reason, e.exit_code, e.detail);
  }
  std::string operator()(const core::LeaseEnded& e) const {
    return "ended: " + cause(e.reason, e.exit_code, e.detail) + "; " + span_of(e.billed) +
           " billed, " + amount(e.charged.count(), currency);
  }
  std::string operator()(const core::PricesMoved& e) const {
    std::string text = "per GPU-hour:";
    for (const core::PoolPrice& pool : e.prices) {
      text += " " + id_of("class", pool.gpu_class.value()) + " " +
              id_of("site", pool.site.value()) + " " +
              amount(micros_per_gpu_hour(pool.last), currency) + ";";
    }
    text.pop_back();
    return text;
  }
  std::string operator()(const core::LeaseStarted& e) const {
    return "started" + std::string(e.attempts.empty() ? " without a job" : "") + " at " +
           time_of(e.at);
  }
  std::string operator()(const core::LeaseMoved& e) const {
    return "moved" + (e.ranks.empty() ? "" : " to " + id_of("node", e.ranks[0].node.value())) +
           (e.detail.empty() ? "" : ": " + e.detail);
  }
  std::string operator()(const core::LeaseDelayed& e) const {
    return "due, but its GPUs are not ready" + (e.detail.empty() ? "" : ": " + e.detail);
  }
  std::string operator()(const core::LeaseCancelled&) const {
    return "given back before its start; its fee is settled then";
  }
  std::string operator()(const core::JobGiven&) const { return "got its job"; }
  std::string operator()(const core::DemandCurveSet& e) const {
    return "a forecast of demand for " + std::to_string(e.gpus.size()) + " quarter hours from " +
           time_of(Instant(e.first.count() * kSlot.count())) + " on";
  }
  std::string operator()(const core::SlotClosed& e) const {
    std::string text =
        "quarter hour from " + time_of(Instant(e.slot.count() * kSlot.count())) + ", per GPU-hour:";
    for (const core::ClosedPool& pool : e.pools) {
      text += " " + id_of("class", pool.gpu_class.value()) + " " +
              id_of("site", pool.site.value()) + " " +
              amount(micros_per_gpu_hour(pool.price), currency) + ", " +
              std::to_string(pool.demand) + " wanted of " + std::to_string(pool.supply) + ";";
    }
    text.pop_back();
    return text;
  }
  std::string operator()(const core::CountersSet&) const { return "counters set"; }
  std::string operator()(const core::OrdersReviewed&) const { return "waiting orders reviewed"; }
};

// A detail may come from a job or a node: no line breaks, no terminal controls, bounded.
std::string one_line(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      c = ' ';
    }
  }
  if (text.size() > kTextBytesMax) {
    std::size_t end = kTextBytesMax - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
      --end;  // not inside a UTF-8 character
    }
    text.replace(end, std::string::npos, "...");
  }
  return text;
}

}  // namespace

std::string describe(const core::Event& event, std::string_view currency) {
  return one_line(std::visit(Describe{currency}, event));
}

}  // namespace bmgpu::store
