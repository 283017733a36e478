// What a run has to say: the first rule that was broken, and what happened just before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/time.h"

namespace bmgpu::sim {

struct Violation {
  std::string rule;    // of a closed set of names, see the checkers
  std::string detail;  // one sentence
  Instant at;
  bool operator==(const Violation&) const = default;
};

class Verdict {
 public:
  // Only the first counts: what follows from it says nothing new.
  void fail(Instant at, std::string rule, std::string detail) {
    if (!violation_) {
      violation_ = Violation{std::move(rule), std::move(detail), at};
    }
  }
  bool failed() const { return violation_.has_value(); }
  const std::optional<Violation>& violation() const { return violation_; }

 private:
  std::optional<Violation> violation_;
};

// The last `kept` things that happened, and a digest of all of them. `what` is a literal.
class Trace {
 public:
  explicit Trace(std::size_t kept) : entries_(kept) {}

  void note(Instant at, const char* what, std::uint64_t a = 0, std::uint64_t b = 0) {
    entries_[count_++ % entries_.size()] = {at, what, a, b};
    digest_.add(at.unix_ms());
    digest_.add(std::uint64_t{static_cast<unsigned char>(what[0])} << 8 |
                static_cast<unsigned char>(what[1]));
    digest_.add(a);
    digest_.add(b);
  }
  std::uint64_t digest() const { return digest_.value(); }

  // Oldest first, one line each, times as seconds since `start`.
  std::vector<std::string> lines(Instant start) const;

 private:
  struct Entry {
    Instant at;
    const char* what = "";
    std::uint64_t a = 0;
    std::uint64_t b = 0;
  };
  std::vector<Entry> entries_;
  std::uint64_t count_ = 0;
  Digest digest_;
};

// Seconds with three decimals: "12.345".
std::string seconds_text(Duration since);

}  // namespace bmgpu::sim
