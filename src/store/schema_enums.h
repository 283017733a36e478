// The enums of journal_schema.proto <-> those of core, value by value, so that neither side can be
// reordered by accident. Private to src/store.
#pragma once

#include <optional>

#include "core/events.h"
#include "store/journal_schema.pb.h"

namespace bmgpu::store {

v1::Form to_schema(core::Form value);
v1::Driver to_schema(core::Driver value);
v1::NodeListing to_schema(core::NodeListing value);
v1::GpuState to_schema(core::GpuState value);
v1::AttemptState to_schema(core::AttemptState value);
v1::LeaseState to_schema(core::LeaseState value);
v1::StartKind to_schema(core::StartKind value);
v1::RestartPolicy to_schema(core::RestartPolicy value);
v1::EndReason to_schema(core::EndReason value);

// Absent for 0 and for values that this version does not know.
std::optional<core::Form> from_schema(v1::Form value);
std::optional<core::Driver> from_schema(v1::Driver value);
std::optional<core::NodeListing> from_schema(v1::NodeListing value);
std::optional<core::GpuState> from_schema(v1::GpuState value);
std::optional<core::AttemptState> from_schema(v1::AttemptState value);
std::optional<core::LeaseState> from_schema(v1::LeaseState value);
std::optional<core::StartKind> from_schema(v1::StartKind value);
std::optional<core::RestartPolicy> from_schema(v1::RestartPolicy value);
std::optional<core::EndReason> from_schema(v1::EndReason value);

}  // namespace bmgpu::store
