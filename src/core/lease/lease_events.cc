#include "core/lease/lease_events.h"

#include <utility>

#include "core/ledger/charge.h"

namespace bmgpu::core {
namespace {

constexpr std::size_t kDetailMax = 1000;  // bytes

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

LeaseEnded end_lease(const Lease& lease, EndReason reason, Instant stopped,
                     std::optional<std::int32_t> exit_code, std::string detail) {
  Bill total = bill(lease, reason, stopped);
  return LeaseEnded{lease.id,     lease.order, lease.tenant,      reason,
                    stopped,      total.from,  total.billed,      total.charged,
                    lease.quoted, exit_code,   std::move(detail), total.fee};
}

std::string cut_detail(std::string text) {
  if (text.size() > kDetailMax) {
    std::size_t size = kDetailMax;
    while (size > 0 && continues_a_character(text[size])) {
      --size;
    }
    text.resize(size);
  }
  return text;
}

std::variant<const Lease*, Reason> lease_of_attempt(const State& state, LeaseId id,
                                                    std::uint32_t rank, FencingToken token) {
  const auto it = state.leases.find(id);
  if (it == state.leases.end()) {
    return Reason{ReasonCode::NoSuchObject, "there is no such lease, or it has ended"};
  }
  const Lease& lease = it->second;
  if (rank >= lease.attempts.size() ||
      FencingToken{lease.attempts[rank].incarnation, lease.attempts[rank].number} != token) {
    return Reason{ReasonCode::NoSuchObject, "that attempt is not the present one of its lease"};
  }
  return &lease;
}

}  // namespace bmgpu::core
