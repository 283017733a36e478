#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/text.h"

namespace bmgpu::cli {
namespace {

std::string_view escape_code(Style style) {
  switch (style) {
    case Style::Plain:
      return "";
    case Style::Bold:
      return "\x1b[1m";
    case Style::Dim:
      return "\x1b[2m";
    case Style::Green:
      return "\x1b[32m";
    case Style::Yellow:
      return "\x1b[33m";
    case Style::Red:
      return "\x1b[31m";
  }
  check(false, "style: no such value");
  return "";
}

}  // namespace

std::string styled(std::string_view text, Style style, Colours colours) {
  if (colours == Colours::Off || style == Style::Plain) {
    return std::string(text);
  }
  return std::string(escape_code(style)) + std::string(text) + "\x1b[0m";
}

void Table::add(std::vector<Cell> cells) {
  check(cells.size() == columns_.size(), "table: a row has another number of cells than columns");
  for (Cell& cell : cells) {
    cell.text = cell.text.empty() ? "-" : printable(cell.text);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text(Colours colours) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const std::vector<Cell>& row : rows_) {
      width = std::max(width, display_width(row[i].text));
    }
    widths.push_back(width);
  }
  std::string out;
  const auto append_line = [&](const auto& cell_at) {
    std::string line;
    std::size_t blanks = 0;  // owed before the next cell, so that no line ends in blanks
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_at(i);
      const std::size_t padding = widths[i] - display_width(cell.text);
      const bool right = columns_[i].align == Align::Right;
      line.append(blanks + (right ? padding : 0), ' ');
      line += styled(cell.text, cell.style, colours);
      blanks = 2 + (right ? 0 : padding);
    }
    out += line + "\n";
  };
  append_line([&](std::size_t i) { return Cell(columns_[i].title, Style::Bold); });
  for (const std::vector<Cell>& row : rows_) {
    append_line([&](std::size_t i) { return row[i]; });
  }
  return out;
}

}  // namespace bmgpu::cli
