// What lies in the fixtures of tests/store/data: one event of every kind of version 1, written out.
// A field that a later version adds has its default here, as it has when it reads these files.
#pragma once

#include <vector>

#include "store/journal.h"

namespace bmgpu::store {

inline constexpr Instant kFixtureAt{1'796'000'400'000};
inline constexpr Sequence kFixtureSnapshotAt{4};

std::vector<core::Event> fixture_events();
std::vector<Recorded> fixture_recorded();  // the same, as the journal numbers them
Batch fixture_batch();                     // the same, with documents and answers

}  // namespace bmgpu::store
