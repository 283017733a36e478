#include "core/market/words.h"

#include <gtest/gtest.h>

namespace bmgpu::core {
namespace {

TEST(WordsTest, AreLowerCaseRunsOfLettersAndDigits) {
  EXPECT_EQ(normalise_words("A100-80GB"), "a100 80gb");
  EXPECT_EQ(normalise_words("  NVIDIA   GeForce RTX_4090 "), "geforce rtx 4090");
  EXPECT_EQ(normalise_words("nvidia"), "");
  EXPECT_EQ(normalise_words("---"), "");
  EXPECT_EQ(normalise_words("H\xC3\xA9llo"), "h llo");
  EXPECT_EQ(normalise_words(normalise_words("A100-80GB")), "a100 80gb");
}

TEST(WordsTest, EachMustBeAWordOfTheModel) {
  const char* model = "NVIDIA A100 80GB PCIe";
  EXPECT_TRUE(words_match("A100", model));
  EXPECT_TRUE(words_match("a100 80gb", model));
  EXPECT_TRUE(words_match("80GB A100", model));
  EXPECT_TRUE(words_match("nvidia a100", model));
  EXPECT_TRUE(words_match("", model));
  EXPECT_FALSE(words_match("A10", model));
  EXPECT_FALSE(words_match("A100 40GB", model));
  EXPECT_FALSE(words_match("100", model));
  EXPECT_FALSE(words_match("A100", "NVIDIA A10"));
  EXPECT_TRUE(words_match("rtx 4090", "NVIDIA GeForce RTX 4090"));
}

}  // namespace
}  // namespace bmgpu::core
