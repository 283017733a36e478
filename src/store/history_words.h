// The words that the history uses for kinds, objects and closed lists. Private to src/store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/events.h"

namespace bmgpu::store {

// "lease-granted".
std::string_view kind_name(const core::Event& event);

// Bookkeeping of core that says nothing to people is not in the timeline.
bool is_in_timeline(const core::Event& event);

// "lease-17".
std::string id_of(std::string_view prefix, std::uint64_t id);
// The object that an event is about; "market" for what belongs to none.
std::string subject_of(const core::Event& event);

// "job-exited", "host-failure"; absent for a word that this version does not know.
std::string word_of(core::EndReason reason);
std::string word_of(core::RestartPolicy restart);
std::optional<core::EndReason> end_reason_of(std::string_view word);
std::optional<core::RestartPolicy> restart_policy_of(std::string_view word);

}  // namespace bmgpu::store
