#include "cli/text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/terminal.h"

namespace bmgpu::cli {
namespace {

TEST(TextTest, PrintableEscapesWhatMovesTheCursor) {
  EXPECT_EQ(printable("plain ü 漢"), "plain ü 漢");
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b");  // C1 control: another way to write ESC [
}

TEST(TextTest, DecodesStrictly) {
  EXPECT_EQ(decode_utf8("\xe6\xbc\xa2").code, U'漢');
  for (const char* bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\xbc", "\x80"}) {
    EXPECT_FALSE(decode_utf8(bad).valid) << bad;
  }
}

TEST(TextTest, WidthCountsTerminalColumns) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("ü"), 1u);
  EXPECT_EQ(display_width("u\xcc\x88"), 1u);  // u and a combining diaeresis
  EXPECT_EQ(display_width("漢字"), 4u);
}

TEST(StatusLineTest, ALogGetsNewsNotNumbers) {
  std::ostringstream lines;
  StatusLine log(lines, StatusLine::Mode::Lines);
  log.show("waiting: the price is 0.24");
  log.show("waiting: the price is 0.25");
  log.show("preparing: image");
  EXPECT_EQ(lines.str(), "waiting: the price is 0.24\npreparing: image\n");
  std::ostringstream screen;
  {
    StatusLine terminal(screen, StatusLine::Mode::Rewrite);
    terminal.show("1 %");
    terminal.show("2 %");
  }
  EXPECT_NE(screen.str().find("2 %"), std::string::npos);
}

}  // namespace
}  // namespace bmgpu::cli
