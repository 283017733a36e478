// From the market's state to what people see on the wire. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "api/server.h"
#include "base/money.h"
#include "controld/directory.h"
#include "core/views.h"
#include "store/history.h"

namespace bmgpu::v1 {
class JobRecord;
class Order;
class Quote;
class Token;
}  // namespace bmgpu::v1

namespace bmgpu::controld {

// What an order's view needs beside the core's state. `job` null: its document is gone.
struct OrderContext {
  const Directory& directory;
  const v1::JobRecord* job = nullptr;
  std::string progress;
};

v1::Order waiting_view(const core::State& state, const core::Order& order,
                       const std::string& waiting_reason, const OrderContext& context, Instant now);
v1::Order lease_view(const core::State& state, const core::Lease& lease,
                     const OrderContext& context, Instant now);

// What stays of an order that is over. `lease` and `order` as they were right before.
v1::Order ended_view(const core::State& state, const core::Lease& lease,
                     const core::LeaseEnded& ended, const OrderContext& context, Instant now);
v1::Order closed_view(const core::State& state, const core::Order& order,
                      const core::OrderClosed& closed, const OrderContext& context, Instant now);

// An ended order as history has it; names and image are elsewhere.
v1::Order history_view(const store::HistoryOrder& order, const Directory& directory);

v1::Quote quote_view(const core::State& state, const core::Quote& quote,
                     const Directory& directory, Instant now);
v1::Token token_view(const TokenView& token, Instant now);

// Average per GPU-hour, rounded up. REQUIRES: gpus > 0, duration > 0.
std::int64_t average_micros_per_gpu_hour(Money total, std::int64_t gpus, Duration duration);

// A tenant's price limit per GPU-hour as core counts it, per GPU-slot, rounded down.
Result<Price> price_limit(std::int64_t micros_per_gpu_hour);

const char* gpu_state_text(core::GpuState state);
const char* form_text(core::Form form);

}  // namespace bmgpu::controld
