#include "store/schema_enums.h"

#include "base/check.h"

namespace bmgpu::store {

v1::Form to_schema(core::Form value) {
  switch (value) {
    case core::Form::Unknown:
      return v1::FORM_UNKNOWN;
    case core::Form::Pcie:
      return v1::FORM_PCIE;
    case core::Form::Sxm:
      return v1::FORM_SXM;
  }
  check_failed("journal: Form out of its range");
}

v1::Driver to_schema(core::Driver value) {
  switch (value) {
    case core::Driver::Real:
      return v1::DRIVER_REAL;
    case core::Driver::Simulated:
      return v1::DRIVER_SIMULATED;
  }
  check_failed("journal: Driver out of its range");
}

v1::NodeListing to_schema(core::NodeListing value) {
  switch (value) {
    case core::NodeListing::Offered:
      return v1::NODE_LISTING_OFFERED;
    case core::NodeListing::Draining:
      return v1::NODE_LISTING_DRAINING;
  }
  check_failed("journal: NodeListing out of its range");
}

v1::GpuState to_schema(core::GpuState value) {
  switch (value) {
    case core::GpuState::Free:
      return v1::GPU_STATE_FREE;
    case core::GpuState::Leased:
      return v1::GPU_STATE_LEASED;
    case core::GpuState::Sanitizing:
      return v1::GPU_STATE_SANITIZING;
    case core::GpuState::Failed:
      return v1::GPU_STATE_FAILED;
  }
  check_failed("journal: GpuState out of its range");
}

v1::AttemptState to_schema(core::AttemptState value) {
  switch (value) {
    case core::AttemptState::Assigned:
      return v1::ATTEMPT_STATE_ASSIGNED;
    case core::AttemptState::Running:
      return v1::ATTEMPT_STATE_RUNNING;
    case core::AttemptState::Ended:
      return v1::ATTEMPT_STATE_ENDED;
  }
  check_failed("journal: AttemptState out of its range");
}

v1::LeaseState to_schema(core::LeaseState value) {
  switch (value) {
    case core::LeaseState::Booked:
      return v1::LEASE_STATE_BOOKED;
    case core::LeaseState::Cancelled:
      return v1::LEASE_STATE_CANCELLED;
    case core::LeaseState::Held:
      return v1::LEASE_STATE_HELD;
    case core::LeaseState::Preparing:
      return v1::LEASE_STATE_PREPARING;
    case core::LeaseState::Running:
      return v1::LEASE_STATE_RUNNING;
    case core::LeaseState::Ending:
      return v1::LEASE_STATE_ENDING;
  }
  check_failed("journal: LeaseState out of its range");
}

v1::StartKind to_schema(core::StartKind value) {
  switch (value) {
    case core::StartKind::Now:
      return v1::START_KIND_NOW;
    case core::StartKind::At:
      return v1::START_KIND_AT;
    case core::StartKind::Cheapest:
      return v1::START_KIND_CHEAPEST;
  }
  check_failed("journal: StartKind out of its range");
}

v1::RestartPolicy to_schema(core::RestartPolicy value) {
  switch (value) {
    case core::RestartPolicy::HostFailure:
      return v1::RESTART_POLICY_HOST_FAILURE;
    case core::RestartPolicy::Never:
      return v1::RESTART_POLICY_NEVER;
  }
  check_failed("journal: RestartPolicy out of its range");
}

v1::EndReason to_schema(core::EndReason value) {
  switch (value) {
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
  check_failed("journal: EndReason out of its range");
}

std::optional<core::Form> from_schema(v1::Form value) {
  switch (value) {
    case v1::FORM_UNKNOWN:
      return core::Form::Unknown;
    case v1::FORM_PCIE:
      return core::Form::Pcie;
    case v1::FORM_SXM:
      return core::Form::Sxm;
    default:
      return std::nullopt;
  }
}

std::optional<core::Driver> from_schema(v1::Driver value) {
  switch (value) {
    case v1::DRIVER_REAL:
      return core::Driver::Real;
    case v1::DRIVER_SIMULATED:
      return core::Driver::Simulated;
    default:
      return std::nullopt;
  }
}

std::optional<core::NodeListing> from_schema(v1::NodeListing value) {
  switch (value) {
    case v1::NODE_LISTING_OFFERED:
      return core::NodeListing::Offered;
    case v1::NODE_LISTING_DRAINING:
      return core::NodeListing::Draining;
    default:
      return std::nullopt;
  }
}

std::optional<core::GpuState> from_schema(v1::GpuState value) {
  switch (value) {
    case v1::GPU_STATE_FREE:
      return core::GpuState::Free;
    case v1::GPU_STATE_LEASED:
      return core::GpuState::Leased;
    case v1::GPU_STATE_SANITIZING:
      return core::GpuState::Sanitizing;
    case v1::GPU_STATE_FAILED:
      return core::GpuState::Failed;
    default:
      return std::nullopt;
  }
}

std::optional<core::AttemptState> from_schema(v1::AttemptState value) {
  switch (value) {
    case v1::ATTEMPT_STATE_ASSIGNED:
      return core::AttemptState::Assigned;
    case v1::ATTEMPT_STATE_RUNNING:
      return core::AttemptState::Running;
    case v1::ATTEMPT_STATE_ENDED:
      return core::AttemptState::Ended;
    default:
      return std::nullopt;
  }
}

std::optional<core::LeaseState> from_schema(v1::LeaseState value) {
  switch (value) {
    case v1::LEASE_STATE_BOOKED:
      return core::LeaseState::Booked;
    case v1::LEASE_STATE_CANCELLED:
      return core::LeaseState::Cancelled;
    case v1::LEASE_STATE_HELD:
      return core::LeaseState::Held;
    case v1::LEASE_STATE_PREPARING:
      return core::LeaseState::Preparing;
    case v1::LEASE_STATE_RUNNING:
      return core::LeaseState::Running;
    case v1::LEASE_STATE_ENDING:
      return core::LeaseState::Ending;
    default:
      return std::nullopt;
  }
}

std::optional<core::StartKind> from_schema(v1::StartKind value) {
  switch (value) {
    case v1::START_KIND_NOW:
      return core::StartKind::Now;
    case v1::START_KIND_AT:
      return core::StartKind::At;
    case v1::START_KIND_CHEAPEST:
      return core::StartKind::Cheapest;
    default:
      return std::nullopt;
  }
}

std::optional<core::RestartPolicy> from_schema(v1::RestartPolicy value) {
  switch (value) {
    case v1::RESTART_POLICY_HOST_FAILURE:
      return core::RestartPolicy::HostFailure;
    case v1::RESTART_POLICY_NEVER:
      return core::RestartPolicy::Never;
    default:
      return std::nullopt;
  }
}

std::optional<core::EndReason> from_schema(v1::EndReason value) {
  switch (value) {
    case v1::END_REASON_JOB_EXITED:
      return core::EndReason::JobExited;
    case v1::END_REASON_STOPPED:
      return core::EndReason::Stopped;
    case v1::END_REASON_TIME_UP:
      return core::EndReason::TimeUp;
    case v1::END_REASON_NODE_LOST:
      return core::EndReason::NodeLost;
    case v1::END_REASON_START_FAILED:
      return core::EndReason::StartFailed;
    case v1::END_REASON_DEVICE_CHECK_FAILED:
      return core::EndReason::DeviceCheckFailed;
    case v1::END_REASON_PREPARATION_TIMEOUT:
      return core::EndReason::PreparationTimeout;
    case v1::END_REASON_CANCELLED:
      return core::EndReason::Cancelled;
    case v1::END_REASON_EXPIRED:
      return core::EndReason::Expired;
    case v1::END_REASON_GPU_LOST:
      return core::EndReason::GpuLost;
    case v1::END_REASON_OUT_OF_MEMORY:
      return core::EndReason::OutOfMemory;
    case v1::END_REASON_HOST_UNAVAILABLE:
      return core::EndReason::HostUnavailable;
    default:
      return std::nullopt;
  }
}

}  // namespace bmgpu::store
