// Fields and values of offer queries: names, ranges, units. Private to offer_query.cc.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/market/offer_query.h"

namespace bmgpu::core {

enum class ValueKind { Words, Name, Form, Driver, Count, Money, Size, Cores };

struct FieldRule {
  QueryField field;
  std::string_view name;
  ValueKind kind;
  bool is_text;
  std::int64_t low;  // of numbers, in the unit of QueryTerm::number
  std::int64_t high;
};

// Longer signs before their own beginnings.
inline constexpr std::array<std::pair<std::string_view, QueryOperator>, 6> kOperators = {{
    {"!=", QueryOperator::NotEqual},
    {"<=", QueryOperator::LessOrEqual},
    {">=", QueryOperator::GreaterOrEqual},
    {"=", QueryOperator::Equal},
    {"<", QueryOperator::Less},
    {">", QueryOperator::Greater},
}};

const FieldRule* find_field(std::string_view name);  // null: unknown
const FieldRule& rule_of(QueryField field);

// Reads `value` into term.text or term.number; an error names `position`.
std::optional<Error> read_value(const FieldRule& rule, const std::string& value,
                                std::size_t position, QueryTerm& term);
std::string print_value(const QueryTerm& term);

// "at position 5: what". Positions count bytes from 1.
Error bad_query(std::size_t position, const std::string& what);
Error no_such_field(std::size_t position, std::string_view name);
// A word without comparison. If it is like no field, it may be the name of a GPU.
Error bare_word(std::size_t position, std::string_view word);

std::string_view form_word(Form form);        // pcie, sxm, unknown
std::string_view driver_word(Driver driver);  // real, simulated

}  // namespace bmgpu::core
