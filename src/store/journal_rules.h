// What every journal checks alike, whatever it is made of. Private to src/store.
#pragma once

#include <string>

#include "base/check.h"
#include "store/journal.h"

namespace bmgpu::store {

inline void check_document_kind(std::string_view kind) {
  check(!kind.empty() && kind.size() <= 32, "journal: a document's kind has 1 to 32 characters");
  for (const char c : kind) {
    check((c >= 'a' && c <= 'z') || c == '-', "journal: a document's kind is of [a-z-]");
  }
}

inline void check_cut(Sequence sequence, Sequence cut, Sequence last) {
  check(sequence <= last, "journal: a snapshot lies beyond the last event");
  check(cut <= sequence, "journal: a cut lies beyond its snapshot");
}

inline Error second_writer(Sequence expected, Sequence last) {
  return Error{ErrorCode::DataLoss, "the journal ends at event " + std::to_string(last.value()) +
                                        ", not at " + std::to_string(expected.value()) +
                                        ": something else has written to it"};
}

}  // namespace bmgpu::store
