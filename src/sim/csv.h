// Reads a CSV file of a trace, row by row. Every error names file, line and column.
//
// Plain CSV: a header line, then rows of as many fields, separated by commas. Quotes have no
// meaning, because no trace uses them. Limits (CsvLimits) bound memory and time on any input.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::sim {

struct CsvLimits {
  static constexpr std::size_t kLineBytesMax = 4096;
  static constexpr std::size_t kColumnsMax = 64;
  static constexpr std::size_t kRowsMax = 1'000'000;
};

// One row while the reader stands on it. The first error of any field is kept and told by error().
class CsvReader {
 public:
  // Opens `path` and reads its header. InvalidArgument if it cannot be read or has no header.
  static Result<CsvReader> open(const std::string& path);

  // Index of the column, or InvalidArgument that names the file and the columns that there are.
  Result<std::size_t> column(std::string_view name) const;
  bool has_column(std::string_view name) const;

  // Steps to the next row; false at the end of the file, or if error() is set.
  bool next();
  // A field of the row. REQUIRES: next() was true; `column` came from column().
  std::string_view text(std::size_t column) const;
  // The same as a whole number in [low, high]. Otherwise sets error() and returns `low`.
  std::int64_t number(std::size_t column, std::int64_t low, std::int64_t high);

  // The same of seconds with up to three decimals, in milliseconds; further decimals are left out.
  std::int64_t milliseconds(std::size_t column, std::int64_t low, std::int64_t high);

  // Sets error() to "FILE:LINE: column 'NAME': WHY" unless it is set.
  void fail(std::size_t column, const std::string& why);
  bool failed() const { return failed_; }
  // REQUIRES: failed().
  Error error() const { return Error{ErrorCode::InvalidArgument, message_}; }

 private:
  explicit CsvReader(std::string path) : path_(std::move(path)), file_(path_) {}
  bool read_line();
  void fail_line(const std::string& why);

  std::string path_;
  std::ifstream file_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;
  bool failed_ = false;
  std::string message_;
};

}  // namespace bmgpu::sim
