#include "controld/views.h"

#include "base/wide.h"
#include "bmgpu/v1/records.pb.h"
#include "wire/ids.h"

namespace bmgpu::controld {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

v1::RestartPolicy to_wire(core::RestartPolicy restart) {
  return restart == core::RestartPolicy::Never ? v1::RESTART_POLICY_NEVER
                                               : v1::RESTART_POLICY_HOST_FAILURE;
}

v1::EndReason to_wire(core::EndReason reason) {
  switch (reason) {
    case core::EndReason::JobExited:
      return v1::END_REASON_JOB_EXITED;
    case core::EndReason::Stopped:
      return v1::END_REASON_STOPPED;
    case core::EndReason::TimeUp:
      return v1::END_REASON_TIME_UP;
    case core::EndReason::NodeLost:
      return v1::END_REASON_NODE_LOST;
    case core::EndReason::StartFailed:
      return v1::END_REASON_START_FAILED;
    case core::EndReason::DeviceCheckFailed:
      return v1::END_REASON_DEVICE_CHECK_FAILED;
    case core::EndReason::PreparationTimeout:
      return v1::END_REASON_PREPARATION_TIMEOUT;
    case core::EndReason::Cancelled:
      return v1::END_REASON_CANCELLED;
    case core::EndReason::Expired:
      return v1::END_REASON_EXPIRED;
    case core::EndReason::GpuLost:
      return v1::END_REASON_GPU_LOST;
    case core::EndReason::OutOfMemory:
      return v1::END_REASON_OUT_OF_MEMORY;
    case core::EndReason::HostUnavailable:
      return v1::END_REASON_HOST_UNAVAILABLE;
  }
  check(false, "views: unknown end reason");
  return v1::END_REASON_UNSPECIFIED;
}

v1::OrderState to_wire(core::LeaseState state) {
  switch (state) {
    case core::LeaseState::Booked:
      return v1::ORDER_STATE_BOOKED;
    case core::LeaseState::Cancelled:
      return v1::ORDER_STATE_CANCELLED;
    case core::LeaseState::Held:
      return v1::ORDER_STATE_HELD;
    case core::LeaseState::Preparing:
      return v1::ORDER_STATE_PREPARING;
    case core::LeaseState::Running:
      return v1::ORDER_STATE_RUNNING;
    case core::LeaseState::Ending:
      return v1::ORDER_STATE_ENDING;
  }
  check(false, "views: unknown lease state");
  return v1::ORDER_STATE_UNSPECIFIED;
}

std::string gpu_uuid(const core::State& state, NodeId node, GpuId gpu) {
  const auto found = state.nodes.find(node);
  if (found != state.nodes.end()) {
    for (const core::GpuRecord& record : found->second.gpus) {
      if (record.id == gpu) {
        return record.uuid;
      }
    }
  }
  return "";  // booked on what is gone since: it will get another GPU, or was given back
}

void add_job(v1::Order& view, const OrderContext& context) {
  if (context.job != nullptr) {
    view.set_image(context.job->image_asked());
    view.set_name(context.job->job().name());
  }
  view.set_progress(context.progress);
}

// Everything of a lease that neither its state nor the time changes.
v1::Order lease_facts(const core::State& state, const core::Lease& lease,
                      const OrderContext& context) {
  v1::Order view;
  view.set_id(wire::to_text(lease.order));
  view.set_lease(wire::to_text(lease.id));
  view.set_gpu(core::class_spec(state, lease.gpu_class).model);
  view.set_gpus(static_cast<std::uint32_t>(lease.gpus));
  view.set_start_unix_ms(lease.start.unix_ms());
  view.set_end_unix_ms(lease.end.unix_ms());
  view.set_created_unix_ms(lease.start.unix_ms());
  view.set_quote_micros(core::quoted(lease).count());
  view.set_currency(core::policy(state).currency);
  view.set_restart(to_wire(lease.restart));
  view.set_account(wire::to_text(lease.tenant));
  view.set_price_micros_per_gpu_hour(
      average_micros_per_gpu_hour(core::quoted(lease), lease.gpus, lease.end - lease.start));
  for (const Price price : lease.slot_prices) {
    view.add_slot_price_micros(price.count());
  }
  if (!lease.attempts.empty()) {
    view.set_attempt(lease.attempts.front().number.value());
  }
  if (!lease.allocations.empty() && !lease.allocations.back().ranks.empty()) {
    const core::RankPlacement& rank = lease.allocations.back().ranks.front();
    const std::optional<NodeEntry> node = context.directory.node(rank.node);
    view.set_node(node ? node->name : wire::to_text(rank.node));
    for (const core::Item& item : rank.items) {
      if (std::string uuid = gpu_uuid(state, rank.node, item.gpu); !uuid.empty()) {
        view.add_gpu_uuids(std::move(uuid));
      }
    }
  }
  add_job(view, context);
  return view;
}

}  // namespace

v1::Order waiting_view(const core::State& state, const core::Order& order,
                       const std::string& waiting_reason, const OrderContext& context,
                       Instant now) {
  v1::Order view;
  view.set_id(wire::to_text(order.id));
  view.set_state(v1::ORDER_STATE_WAITING);
  view.set_gpu(order.resources.gpu_words);
  view.set_gpus(static_cast<std::uint32_t>(order.resources.gpus));
  view.set_created_unix_ms(order.placed.unix_ms());
  view.set_waiting_reason(waiting_reason);
  view.set_currency(core::policy(state).currency);
  view.set_restart(to_wire(order.restart));
  view.set_account(wire::to_text(order.tenant));
  view.set_now_unix_ms(now.unix_ms());
  add_job(view, context);
  return view;
}

v1::Order lease_view(const core::State& state, const core::Lease& lease,
                     const OrderContext& context, Instant now) {
  v1::Order view = lease_facts(state, lease, context);
  view.set_state(to_wire(lease.state));
  view.set_charge_micros(core::charge_so_far(state, lease, now).count());
  if (lease.running_since) {
    view.set_billed_from_unix_ms(lease.running_since->unix_ms());
    const Instant until = lease.ending_since ? *lease.ending_since : now;
    view.set_billed_ms(std::max<std::int64_t>((until - *lease.running_since).count(), 0));
  }
  if (lease.ending) {
    view.set_end_reason(to_wire(*lease.ending));
    view.set_end_detail(lease.ending_detail);
  }
  if (lease.exit_code) {
    view.set_exit_code(*lease.exit_code);
  }
  view.set_now_unix_ms(now.unix_ms());
  return view;
}

v1::Order ended_view(const core::State& state, const core::Lease& lease,
                     const core::LeaseEnded& ended, const OrderContext& context, Instant now) {
  v1::Order view = lease_facts(state, lease, context);
  view.set_state(v1::ORDER_STATE_ENDED);
  view.set_end_unix_ms(ended.at.unix_ms());
  view.set_end_reason(to_wire(ended.reason));
  view.set_end_detail(ended.detail);
  view.set_quote_micros(ended.quoted.count());
  view.set_charge_micros(ended.charged.count());
  view.set_billed_ms(ended.billed.count());
  if (ended.billed_from) {
    view.set_billed_from_unix_ms(ended.billed_from->unix_ms());
  }
  if (ended.exit_code) {
    view.set_exit_code(*ended.exit_code);
  }
  view.set_progress("");
  view.set_now_unix_ms(now.unix_ms());
  return view;
}

v1::Order closed_view(const core::State& state, const core::Order& order,
                      const core::OrderClosed& closed, const OrderContext& context, Instant now) {
  v1::Order view = waiting_view(state, order, "", context, now);
  view.set_state(v1::ORDER_STATE_ENDED);
  view.set_end_unix_ms(now.unix_ms());
  view.set_end_reason(to_wire(closed.reason));
  return view;
}

v1::Order history_view(const store::HistoryOrder& order, const Directory& directory) {
  v1::Order view;
  view.set_id(wire::to_text(order.order));
  view.set_state(v1::ORDER_STATE_ENDED);
  view.set_gpu(order.gpu);
  view.set_gpus(static_cast<std::uint32_t>(order.gpus));
  view.set_created_unix_ms(order.created.unix_ms());
  view.set_end_unix_ms(order.end.unix_ms());
  view.set_quote_micros(order.quoted.count());
  view.set_charge_micros(order.charged.count());
  view.set_billed_ms(order.billed.count());
  view.set_end_reason(to_wire(order.reason));
  view.set_end_detail(order.detail);
  view.set_currency(order.currency);
  view.set_restart(to_wire(order.restart));
  view.set_account(wire::to_text(order.account));
  if (order.billed_from) {
    view.set_billed_from_unix_ms(order.billed_from->unix_ms());
  }
  if (order.exit_code) {
    view.set_exit_code(*order.exit_code);
  }
  if (order.lease.is_none()) {
    return view;
  }
  const std::optional<NodeEntry> node = directory.node(order.node);
  view.set_lease(wire::to_text(order.lease));
  view.set_node(node ? node->name : wire::to_text(order.node));
  view.set_start_unix_ms(order.start.unix_ms());
  view.set_attempt(order.attempt.value());
  for (const std::string& uuid : order.gpu_uuids) {
    view.add_gpu_uuids(uuid);
  }
  std::int64_t slot_total = 0;
  for (const Price price : order.slot_prices) {
    view.add_slot_price_micros(price.count());
    slot_total += price.count();
  }
  if (!order.slot_prices.empty() && order.gpus > 0) {
    const auto slots = static_cast<std::int64_t>(order.slot_prices.size());
    view.set_price_micros_per_gpu_hour(
        average_micros_per_gpu_hour(Money(slot_total), order.gpus, kSlot * slots));
  }
  return view;
}

v1::Quote quote_view(const core::State& state, const core::Quote& quote,
                     const Directory& directory, Instant now) {
  v1::Quote view;
  const core::GpuClassSpec& spec = core::class_spec(state, quote.gpu_class);
  view.set_id(wire::to_text(quote.id));
  view.set_expires_unix_ms(quote.expires.unix_ms());
  view.set_gpu(spec.model);
  view.set_gpus(static_cast<std::uint32_t>(quote.resources.gpus));
  view.set_gpu_memory_mib(spec.memory_mib);
  view.set_duration_ms(quote.duration.count());
  view.set_start_unix_ms(quote.start.unix_ms());
  view.set_end_unix_ms((quote.start + quote.duration).unix_ms());
  view.set_total_micros(quote.total.count());
  view.set_price_micros_per_gpu_hour(
      average_micros_per_gpu_hour(quote.total, quote.resources.gpus, quote.duration));
  for (const Price price : quote.slot_prices) {
    view.add_slot_price_micros(price.count());
  }
  view.set_currency(core::policy(state).currency);
  for (const core::PriceFactor& factor : quote.factors) {
    v1::PriceFactor& shown = *view.add_factors();
    shown.set_name(factor.name);
    shown.set_value(factor.value);
    shown.set_price_micros_after(factor.after.count());
  }
  view.set_failover("none");
  if (const std::optional<NodeId> node = core::node_for(state, quote, now)) {
    const std::optional<NodeEntry> entry = directory.node(*node);
    view.set_node(entry ? entry->name : wire::to_text(*node));
  }
  view.set_policy_version(quote.policy.value());
  return view;
}

v1::Token token_view(const TokenView& token, Instant now) {
  v1::Token view;
  view.set_id(wire::to_text(wire::TokenId(token.id)));
  view.set_name(token.name);
  view.set_role(token.role == api::Role::Tenant     ? v1::ROLE_TENANT
                : token.role == api::Role::Owner    ? v1::ROLE_OWNER
                : token.role == api::Role::Operator ? v1::ROLE_OPERATOR
                : token.role == api::Role::NodeJoin ? v1::ROLE_NODE_JOIN
                                                    : v1::ROLE_NODE);
  view.set_account(wire::to_text(token.account));
  view.set_node(token.node_name);
  view.set_created_unix_ms(token.created.unix_ms());
  view.set_expires_unix_ms(token.expires ? token.expires->unix_ms() : 0);
  view.set_last_used_unix_ms(token.last_used ? token.last_used->unix_ms() : 0);
  view.set_revoked(token.revoked);
  view.set_state(token.revoked                             ? "revoked"
                 : token.used                              ? "used"
                 : token.expires && *token.expires <= now ? "expired"
                                                           : "live");
  return view;
}

std::int64_t average_micros_per_gpu_hour(Money total, std::int64_t gpus, Duration duration) {
  const Wide gpu_ms = static_cast<Wide>(gpus) * duration.count();
  check(gpu_ms > 0, "views: an average over no time");
  return static_cast<std::int64_t>((static_cast<Wide>(total.count()) * kHourMs + gpu_ms - 1) /
                                   gpu_ms);
}

Result<Price> price_limit(std::int64_t micros_per_gpu_hour) {
  if (micros_per_gpu_hour < 0 ||
      micros_per_gpu_hour > bmgpu::micros_per_gpu_hour(core::Limits::kPriceMax)) {
    return Error{ErrorCode::InvalidArgument,
                 "the price limit must be 0 (none) to 1,000,000 units per GPU-hour"};
  }
  if (micros_per_gpu_hour == 0) {
    return Price();
  }
  return std::max(Price(micros_per_gpu_hour / 4), Price(1));
}

const char* gpu_state_text(core::GpuState state) {
  switch (state) {
    case core::GpuState::Free:
      return "free";
    case core::GpuState::Leased:
      return "leased";
    case core::GpuState::Sanitizing:
      return "sanitizing";
    case core::GpuState::Failed:
      return "failed";
  }
  check(false, "views: unknown GPU state");
  return "";
}

const char* form_text(core::Form form) {
  switch (form) {
    case core::Form::Pcie:
      return "PCIe";
    case core::Form::Sxm:
      return "SXM";
    case core::Form::Unknown:
      return "unknown";
  }
  check(false, "views: unknown form");
  return "";
}

}  // namespace bmgpu::controld
