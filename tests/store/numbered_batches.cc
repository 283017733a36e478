#include "store/numbered_batches.h"

#include <algorithm>

namespace bmgpu::store {
namespace {

std::string documents_mismatch(Journal& journal, std::uint64_t k) {
  const Result<std::vector<Document>> jobs = journal.documents("job");
  if (!jobs) {
    return jobs.error().message;
  }
  if (jobs->size() != k) {
    return std::to_string(jobs->size()) + " documents for " + std::to_string(k) + " batches";
  }
  for (std::uint64_t i = 1; i <= k; ++i) {
    const Document& job = (*jobs)[i - 1];
    const std::size_t digits = std::to_string(i).size();
    if (job != numbered_document(i, job.bytes.size() - std::min(job.bytes.size(), digits))) {
      return "document " + std::to_string(i) + " is another one";
    }
  }
  return "";
}

std::string answers_mismatch(Journal& journal, std::uint64_t k) {
  for (std::uint64_t i = 1; i <= k + 1; ++i) {
    const Result<std::optional<StoredAnswer>> answer =
        journal.find_answer(kNumberedAccount, "key-" + std::to_string(i));
    if (!answer) {
      return answer.error().message;
    }
    const std::optional<StoredAnswer> expected =
        i <= k ? std::optional(numbered_answer(i)) : std::nullopt;
    if (*answer != expected) {
      return "answer " + std::to_string(i) + (i <= k ? " is missing or another one" : " is there");
    }
  }
  return "";
}

}  // namespace

std::string mismatch(Journal& journal, std::uint64_t at_least, std::uint64_t* found) {
  const Result<Loaded> loaded = journal.load();
  if (!loaded) {
    return loaded.error().message;
  }
  std::uint64_t k = 0;
  while (sequence_after(k) < loaded->last) {
    ++k;
  }
  if (sequence_after(k) != loaded->last) {
    return "it ends inside a batch, at event " + std::to_string(loaded->last.value());
  }
  if (k < at_least) {
    return "acknowledged batches are lost: it ends after " + std::to_string(k) + " of " +
           std::to_string(at_least);
  }
  *found = k;
  if (loaded->tail != numbered_events(k, loaded->snapshot_sequence)) {
    return "its events are others";
  }
  if (loaded->incarnation != Incarnation(1)) {
    return "its incarnation is another one";
  }
  const std::string wrong = documents_mismatch(journal, k);
  return wrong.empty() ? answers_mismatch(journal, k) : wrong;
}

}  // namespace bmgpu::store
