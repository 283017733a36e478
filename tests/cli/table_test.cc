#include "cli/table.h"

#include <gtest/gtest.h>

namespace bmgpu::cli {
namespace {

TEST(TableTest, AlignsByWidthWithoutTrailingBlanks) {
  Table table({{"NAME"}, {"N", Align::Right}, {"NOTE"}});
  table.add({"漢字", "7", ""});
  table.add({"a", "120", "longer note"});
  EXPECT_EQ(table.text(Colours::Off),
            "NAME    N  NOTE\n"
            "漢字    7  -\n"
            "a     120  longer note\n");
}

TEST(TableTest, ColoursOnlyWhenAsked) {
  Table table({{"A"}, {"B"}});
  table.add({{"x", Style::Red}, "y"});
  EXPECT_EQ(table.text(Colours::Off), "A  B\nx  y\n");
  EXPECT_EQ(table.text(Colours::On), "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[31mx\x1b[0m  y\n");
}

TEST(TableTest, CellsCannotMoveTheCursor) {
  Table table({{"A"}});
  table.add({"x\x1b[1A\n"});
  EXPECT_EQ(table.text(Colours::Off), "A\nx\\x1b[1A\\x0a\n");
}

}  // namespace
}  // namespace bmgpu::cli
