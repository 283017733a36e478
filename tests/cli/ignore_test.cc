#include "cli/ignore.h"

#include <gtest/gtest.h>

namespace bmgpu::cli {
namespace {

using Kind = IgnoreStack::Kind;

bool ignored(std::string_view patterns, std::string_view path, Kind kind = Kind::File) {
  IgnoreStack stack;
  stack.push("", parse_ignore(patterns));
  return stack.ignores(path, kind);
}

struct Case {
  const char* patterns;
  const char* path;
  bool ignored;
};

// Each line was checked against `git check-ignore`.
TEST(IgnoreTest, FollowsGitsRules) {
  const Case cases[] = {
      {"*.pyc", "a.pyc", true},
      {"*.pyc", "d/e/a.pyc", true},
      {"*.pyc", "a.pyco", false},
      {"/a", "a", true},
      {"/a", "d/a", false},
      {"d/a", "d/a", true},
      {"d/a", "x/d/a", false},
      {"**/d/a", "x/y/d/a", true},
      {"**/d/a", "d/a", true},
      {"a/**", "a/b", true},
      {"a/**", "a/b/c", true},
      {"a/**", "a", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "a/x/y/c", false},
      {"a/*", "a/b", true},
      {"foo**bar", "fooxbar", true},
      {"foo**bar", "foo/bar", false},
      {"?.txt", "a.txt", true},
      {"?.txt", "ab.txt", false},
      {"[a-c].txt", "b.txt", true},
      {"[!a-c].txt", "b.txt", false},
      {"[^a-c].txt", "d.txt", true},
      {"[]].txt", "].txt", true},
      {"[[:digit:]].txt", "7.txt", true},
      {"[[:digit:]].txt", "x.txt", false},
      {"[a", "[a", false},
      {"[a", "a", false},
      {"\\*.txt", "*.txt", true},
      {"\\*.txt", "a.txt", false},
      {"# a", "# a", false},
      {"\\# a", "# a", true},
      {"\\!a", "!a", true},
      {"a  ", "a", true},
      {"a\\ ", "a ", true},
      {"*\n!keep", "keep", false},
      {"*\n!keep", "drop", true},
      {"!keep\n*", "keep", true},
      {"a\r\nb\r\n", "a", true},
      {"", "a", false},
      {"/", "a", false},
      {"\xef\xbb\xbf"
       "a",
       "a", true},
      {"漢*", "漢字", true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ignored(c.patterns, c.path), c.ignored) << c.patterns << " on " << c.path;
  }
}

// What lies below an ignored folder is never asked about: the walk does not enter it.
TEST(IgnoreTest, AStarStaysInItsFolder) {
  EXPECT_TRUE(ignored("a/*", "a/b", Kind::Folder));
  EXPECT_FALSE(ignored("a/*", "a/b/c"));
}

TEST(IgnoreTest, TrailingSlashIsForFoldersOnly) {
  EXPECT_TRUE(ignored("build/", "build", Kind::Folder));
  EXPECT_TRUE(ignored("build/", "x/build", Kind::Folder));
  EXPECT_FALSE(ignored("build/", "build", Kind::File));
}

TEST(IgnoreTest, DeeperFilesOutweighShallowerOnes) {
  IgnoreStack stack;
  stack.push("", parse_ignore("*.log\n!/d/top.log\n"));
  stack.push("d", parse_ignore("!keep.log\n/top.log\n"));
  EXPECT_FALSE(stack.ignores("d/keep.log", Kind::File));
  EXPECT_TRUE(stack.ignores("d/other.log", Kind::File));
  EXPECT_TRUE(stack.ignores("d/top.log", Kind::File));
  stack.pop();
  EXPECT_TRUE(stack.ignores("keep.log", Kind::File));
}

TEST(IgnoreTest, ManyStarsStayFast) {
  std::string stars;
  for (int i = 0; i < 1000; ++i) {
    stars += "a*";
  }
  EXPECT_FALSE(glob_match(stars + "b", std::string(4000, 'a')));
  std::string folders;
  for (int i = 0; i < 200; ++i) {
    folders += "**/a/";
  }
  std::string path = "a";
  for (int i = 0; i < 400; ++i) {
    path += "/a";
  }
  EXPECT_FALSE(ignored(folders + "b", path));
}

}  // namespace
}  // namespace bmgpu::cli
