#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace bmgpu {
namespace {

constexpr std::size_t kWordBytesMax = 64;
// Costs are in halves of a letter, so that a wrong case can cost less than a wrong letter.
constexpr std::size_t kLetterCost = 2;
constexpr std::size_t kCaseCost = 1;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t replace_cost(char a, char b) {
  if (a == b) {
    return 0;
  }
  return lower(a) == lower(b) ? kCaseCost : kLetterCost;
}

// Optimal string alignment: Levenshtein plus a swap of neighbours. Three rows are enough.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    above[j] = j * kLetterCost;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i * kLetterCost;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + kLetterCost, row[j - 1] + kLetterCost,
                         above[j - 1] + replace_cost(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + kLetterCost);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  if (word.size() > kWordBytesMax) {
    return best;
  }
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kWordBytesMax) {
      continue;
    }
    const std::size_t d = distance(word, candidate);
    const bool close = d < std::max(word.size(), candidate.size()) * kLetterCost / 2;
    if (close && (best.empty() || d < best_distance)) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace bmgpu
