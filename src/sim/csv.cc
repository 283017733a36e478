#include "sim/csv.h"

#include <algorithm>
#include <charconv>

namespace bmgpu::sim {
namespace {

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos || fields.size() > CsvLimits::kColumnsMax) {
      return;
    }
    line.remove_prefix(comma + 1);
  }
}

// What of a field an error message shows.
std::string shown(std::string_view field) {
  std::string text;
  for (const char c : field.substr(0, 40)) {
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return "'" + text + (field.size() > 40 ? "…'" : "'");
}

}  // namespace

Result<CsvReader> CsvReader::open(const std::string& path) {
  CsvReader reader(path);
  if (!reader.file_) {
    return Error{ErrorCode::InvalidArgument, path + ": cannot be opened; is the path right?"};
  }
  if (!reader.read_line()) {
    reader.fail_line("no header line");
    return reader.error();
  }
  split(reader.line_, reader.fields_);
  if (reader.fields_.size() > CsvLimits::kColumnsMax) {
    reader.fail_line("more than " + std::to_string(CsvLimits::kColumnsMax) + " columns");
    return reader.error();
  }
  reader.columns_.assign(reader.fields_.begin(), reader.fields_.end());
  return reader;
}

Result<std::size_t> CsvReader::column(std::string_view name) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  if (it != columns_.end()) {
    return static_cast<std::size_t>(it - columns_.begin());
  }
  std::string known;
  for (const std::string& column : columns_) {
    known += (known.empty() ? "" : ", ") + shown(column);
  }
  return Error{ErrorCode::InvalidArgument,
               path_ + ":1: no column '" + std::string(name) + "'; the columns are " + known};
}

bool CsvReader::has_column(std::string_view name) const {
  return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
}

bool CsvReader::next() {
  if (failed_ || !read_line()) {
    return false;
  }
  if (line_number_ - 1 > CsvLimits::kRowsMax) {
    fail_line("more than " + std::to_string(CsvLimits::kRowsMax) + " rows");
    return false;
  }
  split(line_, fields_);
  if (fields_.size() != columns_.size()) {
    fail_line(std::to_string(fields_.size()) + " fields, but the header has " +
              std::to_string(columns_.size()) + " columns");
    return false;
  }
  return true;
}

std::string_view CsvReader::text(std::size_t column) const { return fields_[column]; }

std::int64_t CsvReader::number(std::size_t column, std::int64_t low, std::int64_t high) {
  const std::string_view field = fields_[column];
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (code != std::errc() || end != field.data() + field.size() || value < low || value > high) {
    fail(column, shown(field) + " is not a whole number from " + std::to_string(low) + " to " +
                     std::to_string(high));
    return low;
  }
  return value;
}

std::int64_t CsvReader::milliseconds(std::size_t column, std::int64_t low, std::int64_t high) {
  const std::string_view field = fields_[column];
  const char* const end = field.data() + field.size();
  std::int64_t whole = 0;
  auto [rest, code] = std::from_chars(field.data(), end, whole);
  std::int64_t thousandths = 0;
  bool is_good = code == std::errc() && whole >= 0 && field.front() != '-' && whole <= high / 1000;
  if (is_good && rest != end) {
    is_good = *rest == '.';
    std::int64_t weight = 100;
    for (const char* digit = rest + 1; is_good && digit != end; ++digit) {
      is_good = *digit >= '0' && *digit <= '9';
      thousandths += (*digit - '0') * weight;
      weight /= 10;
    }
  }
  const std::int64_t value = whole * 1000 + thousandths;
  if (!is_good || value < low || value > high) {
    fail(column, shown(field) + " is not a number of seconds above " +
                     (low > 0 ? "0" : "or equal to 0") + ", at most " +
                     std::to_string(high / 1000));
    return low;
  }
  return value;
}

void CsvReader::fail(std::size_t column, const std::string& why) {
  fail_line("column " + shown(columns_[column]) + ": " + why);
}

// One line into line_, never more than the limit. False at the end of the file or on an error.
bool CsvReader::read_line() {
  line_.resize(CsvLimits::kLineBytesMax + 1);
  file_.getline(line_.data(), static_cast<std::streamsize>(line_.size()));
  const auto count = static_cast<std::size_t>(file_.gcount());
  if (count == 0) {
    return false;
  }
  ++line_number_;
  if (file_.fail() && !file_.eof()) {
    fail_line("longer than " + std::to_string(CsvLimits::kLineBytesMax - 1) + " bytes");
    return false;
  }
  line_.resize(file_.eof() ? count : count - 1);
  if (!line_.empty() && line_.back() == '\r') {
    line_.pop_back();
  }
  return true;
}

void CsvReader::fail_line(const std::string& why) {
  if (!failed_) {
    failed_ = true;
    message_ = path_ + ":" + std::to_string(line_number_) + ": " + why;
  }
}

}  // namespace bmgpu::sim
