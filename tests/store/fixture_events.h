// What lies in the fixtures of tests/store/data, by the format that wrote them: one event of every
// kind that the format has, written out. A field that a later format adds has its default here, as
// it has when it reads these files.
#pragma once

#include <vector>

#include "store/journal.h"

namespace bmgpu::store {

inline constexpr Instant kFixtureAt{1'796'000'400'000};
inline constexpr Sequence kFixtureSnapshotAt{4};

std::vector<core::Event> fixture_events(std::int64_t format);
// The same, as the journal numbers them.
std::vector<Recorded> fixture_recorded(std::int64_t format);
// The same, with documents and answers.
Batch fixture_batch(std::int64_t format);

}  // namespace bmgpu::store
