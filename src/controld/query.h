// The query language of `list`: terms FIELD OP VALUE that must all hold, such as
// `gpu=A100 gpus>=2 price<1.2`. docs/reference/query.md has the whole language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::v1 {
class Offer;
}

namespace bmgpu::controld {

class Query {
 public:
  static constexpr std::size_t kBytesMax = 1024;
  static constexpr std::size_t kTermsMax = 32;

  // An unknown field, operator, unit or value is InvalidArgument that names the nearest or the
  // accepted ones.
  static Result<Query> parse(std::string_view text);

  // "gpu=a100 gpus>=2 price<1.20": the query as understood; parses to itself.
  std::string normal_form() const;

  struct Counted {
    std::string term;           // normal form
    std::uint32_t removed = 0;  // offers that this term removed, after those before it
  };
  // Removes what does not match, keeping the order.
  std::vector<Counted> filter(std::vector<v1::Offer>& offers) const;

 private:
  enum class Operator { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };
  enum class Kind { Words, Text, Number, Size, Cpus, Money, Flag };
  struct Field {
    std::string_view name;
    Kind kind;
    std::int64_t (*number)(const v1::Offer& offer);
    std::string (*text)(const v1::Offer& offer);
  };
  struct Term {
    const Field* field = nullptr;
    Operator op = Operator::Equal;
    std::int64_t number = 0;
    std::string text;   // lower case
    std::string shown;  // the value in normal form
  };
  static const std::vector<Field>& fields();
  static Result<Term> parse_term(std::string_view name, std::string_view op, std::string value);
  static Result<void> parse_value(Term& term, const std::string& value);
  static bool matches(const Term& term, const v1::Offer& offer);
  static std::string show(const Term& term);

  std::vector<Term> terms_;
};

}  // namespace bmgpu::controld
