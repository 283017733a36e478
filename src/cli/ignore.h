// Which paths of a folder .gitignore and .bmignore files leave out; the rules are git's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bmgpu::cli {

// One line of an ignore file.
struct IgnorePattern {
  std::vector<std::string> segments;  // between slashes; "**" is any number of folders
  bool negated = false;               // "!…": takes a path back in
  bool folders_only = false;          // "…/"
};

// Does one path segment match a glob (* ? [a-z] [!a-z] [[:alpha:]] \x)? '/' never occurs in either.
bool glob_match(std::string_view glob, std::string_view text);

// The patterns of one ignore file. Comments and blank lines are dropped.
std::vector<IgnorePattern> parse_ignore(std::string_view text);

// The ignore files on the way from the folder's root down to where a walk stands.
//
// A later level outweighs an earlier one, and within a level a later pattern an earlier one; what
// lies below an ignored folder cannot be taken back in, so a walk does not enter it.
class IgnoreStack {
 public:
  // Enters a folder (path relative to the root, "" for the root itself) with its patterns.
  void push(std::string folder, std::vector<IgnorePattern> patterns);
  void pop();

  enum class Kind { File, Folder };
  // `path` is relative to the root and lies directly in the folder pushed last.
  bool ignores(std::string_view path, Kind kind) const;

 private:
  struct Level {
    std::string folder;
    std::vector<IgnorePattern> patterns;
  };
  std::vector<Level> levels_;
};

}  // namespace bmgpu::cli
