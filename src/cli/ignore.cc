#include "cli/ignore.h"

#include <array>
#include <cctype>
#include <optional>
#include <span>

#include "base/check.h"

namespace bmgpu::cli {
namespace {

using Segments = std::span<const std::string>;

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> segments;
  while (true) {
    const std::size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return segments;
    }
    path.remove_prefix(slash + 1);
  }
}

bool in_named_class(std::string_view name, unsigned char c) {
  struct Named {
    std::string_view name;
    int (*holds)(int);
  };
  static constexpr std::array<Named, 12> kClasses = {{{"alnum", std::isalnum},
                                                      {"alpha", std::isalpha},
                                                      {"blank", std::isblank},
                                                      {"cntrl", std::iscntrl},
                                                      {"digit", std::isdigit},
                                                      {"graph", std::isgraph},
                                                      {"lower", std::islower},
                                                      {"print", std::isprint},
                                                      {"punct", std::ispunct},
                                                      {"space", std::isspace},
                                                      {"upper", std::isupper},
                                                      {"xdigit", std::isxdigit}}};
  for (const Named& named : kClasses) {
    if (named.name == name) {
      return named.holds(c) != 0;
    }
  }
  return false;
}

// Reads the bracket expression at the front of `glob` ('[' included). Says whether `c` is in it
// and how long it is; nothing if it is never closed, which then matches nothing, as in git.
struct Bracket {
  bool holds = false;
  std::size_t length = 0;
};
std::optional<Bracket> match_bracket(std::string_view glob, char c) {
  std::size_t i = 1;
  const bool inverted = i < glob.size() && (glob[i] == '!' || glob[i] == '^');
  i += inverted ? 1 : 0;
  bool holds = false;
  for (bool first = true; i < glob.size() && (first || glob[i] != ']'); first = false) {
    if (glob.substr(i).starts_with("[:")) {
      const std::size_t end = glob.find(":]", i + 2);
      if (end != std::string_view::npos) {
        holds |= in_named_class(glob.substr(i + 2, end - i - 2), static_cast<unsigned char>(c));
        i = end + 2;
        continue;
      }
    }
    i += glob[i] == '\\' && i + 1 < glob.size() ? 1 : 0;
    const auto low = static_cast<unsigned char>(glob[i++]);
    unsigned char high = low;
    if (i + 1 < glob.size() && glob[i] == '-' && glob[i + 1] != ']') {
      ++i;
      i += glob[i] == '\\' && i + 1 < glob.size() ? 1 : 0;
      high = static_cast<unsigned char>(glob[i++]);
    }
    const auto value = static_cast<unsigned char>(c);
    holds |= value >= low && value <= high;
  }
  if (i >= glob.size()) {
    return std::nullopt;
  }
  return Bracket{holds != inverted, i + 1};
}

// Does the front of `glob`, which is not '*', accept `c`? The pattern's length, or 0 for no.
std::size_t match_one(std::string_view glob, char c) {
  if (glob.front() == '?') {
    return 1;
  }
  if (glob.front() == '[') {
    const std::optional<Bracket> bracket = match_bracket(glob, c);
    return bracket && bracket->holds ? bracket->length : 0;
  }
  if (glob.front() == '\\' && glob.size() > 1) {
    return glob[1] == c ? 2 : 0;
  }
  return glob.front() == c ? 1 : 0;
}

// As glob_match(), with folders for characters and "**" for '*'. A final "**" stands for at least
// one segment: "a/**" is everything in a, not a itself.
bool match_segments(Segments pattern, Segments path) {
  std::size_t p = 0;
  std::size_t s = 0;
  std::optional<std::size_t> star;  // of the last "**" passed
  std::size_t resume = 0;           // path segment at which to try again after it
  while (s < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      if (p + 1 == pattern.size()) {
        return true;
      }
      star = p++;
      resume = s;
    } else if (p < pattern.size() && glob_match(pattern[p], path[s])) {
      ++p;
      ++s;
    } else if (star) {
      p = *star + 1;
      s = ++resume;
    } else {
      return false;
    }
  }
  return p == pattern.size();
}

std::optional<IgnorePattern> parse_line(std::string_view line) {
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  while (line.ends_with(' ') && !line.ends_with("\\ ")) {
    line.remove_suffix(1);
  }
  if (line.empty() || line.front() == '#') {
    return std::nullopt;
  }
  IgnorePattern pattern;
  if (line.front() == '!') {
    pattern.negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.folders_only = true;
    line.remove_suffix(1);
  }
  const bool anchored = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) {
    line.remove_prefix(1);
  }
  if (line.empty()) {
    return std::nullopt;
  }
  pattern.segments = split_path(line);
  if (!anchored) {
    pattern.segments.insert(pattern.segments.begin(), "**");
  }
  return pattern;
}

}  // namespace

bool glob_match(std::string_view glob, std::string_view text) {
  std::size_t g = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;  // of the last '*' passed
  std::size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
      continue;
    }
    const std::size_t taken = g < glob.size() ? match_one(glob.substr(g), text[t]) : 0;
    if (taken > 0) {
      g += taken;
      ++t;
    } else if (star) {
      g = *star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') {
    ++g;
  }
  return g == glob.size();
}

std::vector<IgnorePattern> parse_ignore(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::vector<IgnorePattern> patterns;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (std::optional<IgnorePattern> pattern = parse_line(text.substr(0, end))) {
      patterns.push_back(std::move(*pattern));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return patterns;
}

void IgnoreStack::push(std::string folder, std::vector<IgnorePattern> patterns) {
  levels_.push_back({std::move(folder), std::move(patterns)});
}

void IgnoreStack::pop() {
  check(!levels_.empty(), "ignore stack: pop without push");
  levels_.pop_back();
}

bool IgnoreStack::ignores(std::string_view path, Kind kind) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const std::size_t skip = level->folder.empty() ? 0 : level->folder.size() + 1;
    check(path.size() > skip, "ignore stack: path is not below the folder");
    const std::vector<std::string> segments = split_path(path.substr(skip));
    for (auto pattern = level->patterns.rbegin(); pattern != level->patterns.rend(); ++pattern) {
      if (pattern->folders_only && kind != Kind::Folder) {
        continue;
      }
      if (match_segments(pattern->segments, segments)) {
        return !pattern->negated;
      }
    }
  }
  return false;
}

}  // namespace bmgpu::cli
