#include "core/market/offer_query.h"

#include <algorithm>
#include <utility>

#include "core/market/offer_values.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

bool compare(std::int64_t left, QueryOperator comparison, std::int64_t right) {
  switch (comparison) {
    case QueryOperator::Equal:
      return left == right;
    case QueryOperator::NotEqual:
      return left != right;
    case QueryOperator::Less:
      return left < right;
    case QueryOperator::LessOrEqual:
      return left <= right;
    case QueryOperator::Greater:
      return left > right;
    case QueryOperator::GreaterOrEqual:
      return left >= right;
  }
  return false;
}

std::int64_t number_of(QueryField field, const OfferRow& row) {
  const OfferView& offer = row.offer;
  switch (field) {
    case QueryField::Gpus:
      return offer.gpus_free;
    case QueryField::Total:
      return offer.gpus_total;
    case QueryField::Price:
      return micros_per_gpu_hour(offer.price);
    case QueryField::Memory:
      return offer.spec.memory_mib;
    case QueryField::Health:
      return row.health;
    case QueryField::Cpu:
      return offer.capacity.cpu_millis;
    case QueryField::Ram:
      return offer.capacity.memory_mib;
    case QueryField::Scratch:
      return offer.capacity.scratch_mib;
    case QueryField::Gpu:
    case QueryField::Node:
    case QueryField::Site:
    case QueryField::Form:
    case QueryField::Driver:
      break;
  }
  check(false, "offer query: the field is no number");
  return 0;
}

bool text_matches(const QueryTerm& term, const OfferRow& row) {
  switch (term.field) {
    case QueryField::Gpu:
      return words_match(term.text, row.offer.spec.model);
    case QueryField::Node:
      return term.text == row.node_name;
    case QueryField::Site:
      return term.text == row.site_name;
    case QueryField::Form:
      return term.text == form_word(row.offer.spec.form);
    case QueryField::Driver:
      return term.text == driver_word(row.offer.driver);
    default:
      check(false, "offer query: the field is no text");
      return false;
  }
}

// Reads a query from left to right.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<OfferQuery> parse() {
    if (text_.size() > kQueryBytesMax) {
      return bad_query(0, "a query has at most " + std::to_string(kQueryBytesMax) + " bytes");
    }
    OfferQuery query;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      if (query.terms.size() == kQueryTermsMax) {
        return bad_query(at_, "a query has at most " + std::to_string(kQueryTermsMax) + " terms");
      }
      if (!query.terms.empty() && take_and() && at_ == text_.size()) {
        return bad_query(at_, "a term is expected after 'and'");
      }
      Result<QueryTerm> term = parse_term();
      if (!term) {
        return term.error();
      }
      query.terms.push_back(std::move(*term));
    }
    return query;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool take_and() {
    const std::string_view rest = text_.substr(at_);
    if (rest != "and" && !rest.starts_with("and ") && !rest.starts_with("and\t")) {
      return false;
    }
    at_ += 3;
    skip_blanks();
    return true;
  }

  Result<QueryTerm> parse_term() {
    const std::size_t name_at = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') {
      ++at_;
    }
    const std::string name(text_.substr(name_at, at_ - name_at));
    const FieldRule* rule = find_field(name);
    if (rule == nullptr) {
      return unknown_field(name_at);
    }
    skip_blanks();
    const std::size_t operator_at = at_;
    const auto comparison = take_operator();
    if (!comparison) {
      return bad_query(operator_at, "'" + name + "' is followed by " +
                                        (rule->is_text ? "= or !=" : "=, !=, <, <=, > or >="));
    }
    if (rule->is_text && *comparison != QueryOperator::Equal &&
        *comparison != QueryOperator::NotEqual) {
      return bad_query(operator_at, "'" + name + "' is compared with = or != only");
    }
    skip_blanks();
    const std::size_t value_at = at_;
    Result<std::string> value = take_value();
    if (!value) {
      return value.error();
    }
    QueryTerm term{rule->field, *comparison, {}, 0};
    if (auto error = read_value(*rule, *value, value_at, term)) {
      return std::move(*error);
    }
    return term;
  }

  Error unknown_field(std::size_t name_at) {
    std::size_t end = name_at;
    while (end < text_.size() &&
           std::string_view(" \t=!<>\"").find(text_[end]) == std::string_view::npos) {
      ++end;
    }
    const std::string_view name = text_.substr(name_at, end - name_at);
    at_ = end;
    skip_blanks();
    const bool compared =
        at_ < text_.size() && std::string_view("=!<>").find(text_[at_]) != std::string_view::npos;
    return compared ? no_such_field(name_at, name) : bare_word(name_at, name);
  }

  std::optional<QueryOperator> take_operator() {
    for (const auto& [sign, comparison] : kOperators) {
      if (text_.substr(at_).starts_with(sign)) {
        at_ += sign.size();
        return comparison;
      }
    }
    return std::nullopt;
  }

  Result<std::string> take_value() {
    const std::size_t start = at_;
    const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
    if (is_quoted) {
      const std::size_t close = text_.find('"', at_ + 1);
      if (close == std::string_view::npos) {
        return bad_query(start, "the quote is not closed");
      }
      at_ = close + 1;
      return std::string(text_.substr(start + 1, close - start - 1));
    }
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t') {
      if (std::string_view("=!<>\"").find(text_[at_]) != std::string_view::npos) {
        return bad_query(at_, "a blank is missing between two terms, or quotes around the value");
      }
      ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<OfferQuery> parse_offer_query(std::string_view text) { return Parser(text).parse(); }

std::string print(const QueryTerm& term) {
  std::string sign;
  for (const auto& [text, comparison] : kOperators) {
    if (comparison == term.comparison) {
      sign = text;
    }
  }
  return std::string(rule_of(term.field).name) + sign + print_value(term);
}

std::string print(const OfferQuery& query) {
  std::string text;
  for (const QueryTerm& term : query.terms) {
    text += (text.empty() ? "" : " and ") + print(term);
  }
  return text;
}

bool matches(const QueryTerm& term, const OfferRow& row) {
  if (rule_of(term.field).is_text) {
    return text_matches(term, row) == (term.comparison == QueryOperator::Equal);
  }
  return compare(number_of(term.field, row), term.comparison, term.number);
}

FilteredOffers filter_offers(const OfferQuery& query, std::vector<OfferRow> rows) {
  FilteredOffers filtered{std::move(rows), {}};
  for (const QueryTerm& term : query.terms) {
    filtered.removed.push_back(
        std::erase_if(filtered.rows, [&](const OfferRow& row) { return !matches(term, row); }));
  }
  return filtered;
}

}  // namespace bmgpu::core
