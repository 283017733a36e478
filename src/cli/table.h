// Tables for people: columns aligned by display width, styles only where colours are on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bmgpu::cli {

enum class Style { Plain, Bold, Dim, Green, Yellow, Red };
enum class Colours { Off, On };

// `text` in the terminal's escape codes for `style`, or as it is.
std::string styled(std::string_view text, Style style, Colours colours);

enum class Align { Left, Right };
struct Column {
  std::string title;
  Align align = Align::Left;
};
struct Cell {
  Cell(std::string text_, Style style_ = Style::Plain)  // NOLINT(*-explicit-*)
      : text(std::move(text_)), style(style_) {}
  Cell(const char* text_) : text(text_) {}  // NOLINT(*-explicit-*)
  std::string text;
  Style style = Style::Plain;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns. Cells are made printable; empty ones show as "-".
  void add(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }

  // Header and rows, each ended by a newline and without trailing blanks.
  std::string text(Colours colours) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace bmgpu::cli
