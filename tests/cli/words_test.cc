#include "cli/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words_of(std::string_view line) {
  Result<Words> words = split_words(line);
  return words ? words->words : std::vector<std::string>{"error: " + words.error().message};
}

TEST(WordsTest, SplitsAsAPosixShellDoes) {
  EXPECT_THAT(words_of("python train.py"), ElementsAre("python", "train.py"));
  EXPECT_THAT(words_of("  a \t b\n c  "), ElementsAre("a", "b", "c"));
  EXPECT_THAT(words_of(R"(a 'b c' "d e" f\ g)"), ElementsAre("a", "b c", "d e", "f g"));
  EXPECT_THAT(words_of(R"('it'\''s')"), ElementsAre("it's"));
  EXPECT_THAT(words_of(R"("a\"b\$c\`d\\e\f")"), ElementsAre("a\"b$c`d\\e\\f"));
  EXPECT_THAT(words_of("'a\\b'"), ElementsAre("a\\b"));
  EXPECT_THAT(words_of("'' \"\""), ElementsAre("", ""));
  EXPECT_THAT(words_of("a\\\nb \"c\\\nd\""), ElementsAre("ab", "cd"));
  EXPECT_THAT(words_of("x=1 #y"), ElementsAre("x=1", "#y"));
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of("\\\n"), IsEmpty());
}

TEST(WordsTest, RefusesWhatIsLeftOpen) {
  EXPECT_FALSE(split_words("a 'b"));
  EXPECT_FALSE(split_words("a \"b"));
  EXPECT_FALSE(split_words("a \\"));
  EXPECT_FALSE(split_words("\"\\"));
}

TEST(WordsTest, NamesUnquotedShellSyntax) {
  EXPECT_EQ(split_words("a && b")->shell_syntax, "&&");
  EXPECT_EQ(split_words("a > b")->shell_syntax, ">");
  EXPECT_EQ(split_words("echo $HOME x")->shell_syntax, "$HOME");
  EXPECT_EQ(split_words("echo \"$HOME\"")->shell_syntax, "$HOME");
  EXPECT_EQ(split_words("echo '$HOME' \\| 'a;b' \\$x")->shell_syntax, "");
  EXPECT_EQ(split_words("costs 5$")->shell_syntax, "");
}

TEST(WordsTest, JoinsSoThatSplittingGivesTheSameWords) {
  const std::vector<std::string> words = {"python", "", "a b", "it's", "$x\n", "--o=1", "漢"};
  EXPECT_EQ(split_words(join_words(words))->words, words);
  EXPECT_EQ(join_words({"python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
}

}  // namespace
}  // namespace bmgpu::cli
