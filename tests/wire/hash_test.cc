#include "wire/hash.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace bmgpu::wire {
namespace {

TEST(HashTest, MatchesThePublishedVector) {  // FIPS 180-2, "abc"
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(HashTest, RunningHashEqualsTheWhole) {
  Sha256 running;
  running.add("a");
  running.add("");
  running.add("bc");
  EXPECT_EQ(running.finish(), sha256("abc"));
}

TEST(HashTest, TextFormsRoundTrip) {
  Prng prng(1);
  for (int length = 0; length < 100; ++length) {
    std::string bytes;
    for (int i = 0; i < length; ++i) {
      bytes += static_cast<char>(prng.below(256));
    }
    EXPECT_EQ(*parse_hex(hex(bytes)), bytes);
    EXPECT_EQ(*parse_base64url(base64url(bytes)), bytes);
  }
  EXPECT_EQ(base64url("\xfb\xff"), "-_8");
}

TEST(HashTest, RefusesOtherSpellings) {
  ASSERT_TRUE(parse_hex("0aff").ok());
  ASSERT_TRUE(parse_base64url("-_8").ok());
  for (const char* text : {"0", "0A", "0g", " 0"}) {
    EXPECT_FALSE(parse_hex(text).ok()) << text;
  }
  for (const char* text : {"-", "-_9", "-_8=", "+/8", "-_ 8"}) {
    EXPECT_FALSE(parse_base64url(text).ok()) << text;
  }
}

TEST(HashTest, RandomBytesDiffer) { EXPECT_NE(random_bytes(32), random_bytes(32)); }

}  // namespace
}  // namespace bmgpu::wire
