#include "controld/query.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "bmgpu/v1/market.pb.h"
#include "core/market/words.h"
#include "wire/units.h"

namespace bmgpu::controld {
namespace {

constexpr std::array<std::string_view, 6> kOperators = {"=", "!=", "<", "<=", ">", ">="};

Error invalid(std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool is_operator(char c) { return c == '=' || c == '!' || c == '<' || c == '>'; }
bool is_field(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

template <typename T>
bool compare(std::size_t op, const T& a, const T& b) {
  switch (op) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

// Takes terms off a query: FIELD OP VALUE, where a value is a bare word or in double quotes with \"
// and
// \\ as escapes.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool at_end() {
    while (!rest_.empty() && is_blank(rest_.front())) {
      rest_.remove_prefix(1);
    }
    return rest_.empty();
  }

  template <typename Holds>
  std::string_view take(Holds holds) {
    std::size_t size = 0;
    while (size < rest_.size() && holds(rest_[size])) {
      ++size;
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  Result<std::string> take_value() {
    at_end();  // blanks after the operator
    if (rest_.empty() || rest_.front() != '"') {
      return std::string(take([](char c) { return !is_blank(c) && c != '"'; }));
    }
    std::string value;
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '"') {
        rest_.remove_prefix(at + 1);
        return value;
      }
      at += rest_[at] == '\\' && at + 1 < rest_.size() ? 1 : 0;
      value += rest_[at];
    }
    return invalid("a quote in the query is not closed");
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

const std::vector<Query::Field>& Query::fields() {
  using v1::Offer;
  static const std::vector<Field> kFields = {
      {"gpu", Kind::Words, nullptr, [](const Offer& o) { return o.gpu(); }},
      {"gpus", Kind::Number, [](const Offer& o) -> std::int64_t { return o.gpus_free(); }, nullptr},
      {"total", Kind::Number, [](const Offer& o) -> std::int64_t { return o.gpus_total(); },
       nullptr},
      {"mem", Kind::Size, [](const Offer& o) { return o.gpu_memory_mib(); }, nullptr},
      {"price", Kind::Money, [](const Offer& o) { return o.price_micros_per_gpu_hour(); }, nullptr},
      {"form", Kind::Text, nullptr, [](const Offer& o) { return o.form(); }},
      {"node", Kind::Text, nullptr, [](const Offer& o) { return o.node(); }},
      {"site", Kind::Text, nullptr, [](const Offer& o) { return o.site(); }},
      {"health", Kind::Number, [](const Offer& o) -> std::int64_t { return o.health(); }, nullptr},
      {"cpus", Kind::Cpus, [](const Offer& o) { return o.cpu_millis(); }, nullptr},
      {"memory", Kind::Size, [](const Offer& o) { return o.memory_mib(); }, nullptr},
      {"scratch", Kind::Size, [](const Offer& o) { return o.scratch_mib(); }, nullptr},
      {"simulated", Kind::Flag, [](const Offer& o) -> std::int64_t { return o.simulated_driver(); },
       nullptr},
  };
  return kFields;
}

Result<Query> Query::parse(std::string_view text) {
  if (text.size() > kBytesMax) {
    return invalid("the query has more than " + std::to_string(kBytesMax) + " bytes");
  }
  Query query;
  Reader reader(text);
  while (!reader.at_end()) {
    const std::string_view name = reader.take(is_field);
    if (name.empty()) {
      return invalid("the query is not understood at '" + std::string(reader.rest().substr(0, 40)) +
                     "': write terms such as gpu=A100 gpus>=2 price<1.2");
    }
    reader.at_end();
    const std::string_view op = reader.take(is_operator);
    Result<std::string> value = reader.take_value();
    if (!value) {
      return value.error();
    }
    Result<Term> term = parse_term(name, op, std::move(*value));
    if (!term) {
      return term.error();
    }
    if (query.terms_.size() == kTermsMax) {
      return invalid("the query has more than " + std::to_string(kTermsMax) + " terms");
    }
    query.terms_.push_back(std::move(*term));
  }
  return query;
}

Result<Query::Term> Query::parse_term(std::string_view name, std::string_view op,
                                      std::string value) {
  Term term;
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    names.emplace_back(field.name);
    if (field.name == lower(name)) {
      term.field = &field;
    }
  }
  if (term.field == nullptr) {
    const std::string close = nearest(lower(name), names);
    std::string known;
    for (const std::string& each : names) {
      known += (known.empty() ? "" : ", ") + each;
    }
    return invalid("unknown field '" + std::string(name) + "' in the query" +
                   (close.empty() ? "" : "; did you mean " + close + "?") + " Fields: " + known);
  }
  const auto known_op = std::find(kOperators.begin(), kOperators.end(), op);
  if (known_op == kOperators.end()) {
    return invalid("after the field " + std::string(name) + " stands '" + std::string(op) +
                   "'; operators are = != < <= > >=");
  }
  term.op = static_cast<Operator>(known_op - kOperators.begin());
  const Kind kind = term.field->kind;
  const bool ordered = term.op != Operator::Equal && term.op != Operator::NotEqual;
  if (ordered && (kind == Kind::Words || kind == Kind::Text || kind == Kind::Flag)) {
    return invalid("the field " + std::string(name) + " takes = and != only");
  }
  if (value.empty()) {
    return invalid("the field " + std::string(name) + " has no value");
  }
  const Result<void> parsed = parse_value(term, value);
  if (!parsed) {
    return invalid("the field " + std::string(name) + ": " + parsed.error().message);
  }
  return term;
}

Result<void> Query::parse_value(Term& term, const std::string& value) {
  const auto take = [&term](const Result<std::int64_t>& number) -> Result<void> {
    if (!number) {
      return number.error();
    }
    term.number = *number;
    term.shown = std::to_string(*number);
    return {};
  };
  switch (term.field->kind) {
    case Kind::Words:
      term.text = core::normalise_words(value);
      term.shown = term.text;
      return term.text.empty() ? Result<void>(invalid("it holds no letter or digit"))
                               : Result<void>();
    case Kind::Text:
      term.text = lower(value);
      term.shown = term.text;
      return {};
    case Kind::Number:
      return take(wire::parse_count(value, "it", 0, 1'000'000));
    case Kind::Cpus: {
      const Result<void> taken = take(wire::parse_count(value, "CPUs", 0, 1'000'000));
      term.number *= 1000;
      return taken;
    }
    case Kind::Size: {
      const Result<void> taken = take(wire::parse_size_mib(value));
      term.shown = taken ? wire::print_size(term.number << 20) : "";
      return taken;
    }
    case Kind::Money: {
      const Result<Money> money = wire::parse_money(value);
      if (!money) {
        return money.error();
      }
      term.number = money->count();
      term.shown = wire::print_money(*money);
      return {};
    }
    case Kind::Flag:
      if (value != "yes" && value != "no") {
        return invalid("write yes or no");
      }
      term.number = value == "yes" ? 1 : 0;
      term.shown = value;
      return {};
  }
  check(false, "query: unknown kind");
  return {};
}

bool Query::matches(const Term& term, const v1::Offer& offer) {
  const auto op = static_cast<std::size_t>(term.op);
  switch (term.field->kind) {
    case Kind::Words:
      return core::words_match(term.text, term.field->text(offer)) == (term.op == Operator::Equal);
    case Kind::Text:
      return compare(op, lower(term.field->text(offer)), term.text);
    default:
      return compare(op, term.field->number(offer), term.number);
  }
}

std::string Query::show(const Term& term) {
  std::string value = term.shown;
  if (std::any_of(value.begin(), value.end(),
                  [](char c) { return is_blank(c) || c == '"' || c == '\\'; })) {
    std::string quoted = "\"";
    for (const char c : value) {
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    value = quoted + "\"";
  }
  return std::string(term.field->name) +
         std::string(kOperators[static_cast<std::size_t>(term.op)]) + value;
}

std::string Query::normal_form() const {
  std::string text;
  for (const Term& term : terms_) {
    text += (text.empty() ? "" : " ") + show(term);
  }
  return text;
}

std::vector<Query::Counted> Query::filter(std::vector<v1::Offer>& offers) const {
  std::vector<Counted> counted;
  for (const Term& term : terms_) {
    const std::size_t removed =
        std::erase_if(offers, [&](const v1::Offer& offer) { return !matches(term, offer); });
    counted.push_back({show(term), static_cast<std::uint32_t>(removed)});
  }
  return counted;
}

}  // namespace bmgpu::controld
