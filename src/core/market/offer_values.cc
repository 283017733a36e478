#include "core/market/offer_values.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/nearest.h"
#include "core/market/words.h"

namespace bmgpu::core {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kMibMax = std::int64_t{1} << 40;
constexpr std::size_t kValueMax = 128;  // bytes

constexpr std::array<FieldRule, 13> kFields = {{
    {QueryField::Gpu, "gpu", ValueKind::Words, true, 0, 0},
    {QueryField::Gpus, "gpus", ValueKind::Count, false, 0, Limits::kGpusPerNodeMax},
    {QueryField::Total, "total", ValueKind::Count, false, 0, Limits::kGpusPerNodeMax},
    {QueryField::Price, "price", ValueKind::Money, false, 0, 4 * Limits::kPriceMax.count()},
    {QueryField::Memory, "mem", ValueKind::Size, false, 0, kMibMax},
    {QueryField::Node, "node", ValueKind::Name, true, 0, 0},
    {QueryField::Site, "site", ValueKind::Name, true, 0, 0},
    {QueryField::Form, "form", ValueKind::Form, true, 0, 0},
    {QueryField::Driver, "driver", ValueKind::Driver, true, 0, 0},
    {QueryField::Health, "health", ValueKind::Count, false, 0, 100},
    {QueryField::Cpu, "cpu", ValueKind::Cores, false, 0, kMillion * 1000},
    {QueryField::Ram, "ram", ValueKind::Size, false, 0, kMibMax},
    {QueryField::Scratch, "scratch", ValueKind::Size, false, 0, kMibMax},
}};

struct Unit {
  std::string_view name;
  std::int64_t mib;
};
// The first of equals is the printed one.
constexpr std::array<Unit, 6> kUnits = {{
    {"TiB", 1024 * 1024},
    {"T", 1024 * 1024},
    {"GiB", 1024},
    {"G", 1024},
    {"MiB", 1},
    {"M", 1},
}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_char(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.';
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return lowered;
}

// Digits with up to `decimals` after a point, times 10^decimals; absent if it is none or too large.
std::optional<std::int64_t> read_decimal(std::string_view text, int decimals) {
  constexpr std::size_t kDigitsMax = 18;
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.empty() || (point != std::string_view::npos && fraction.empty()) ||
      fraction.size() > static_cast<std::size_t>(decimals)) {
    return std::nullopt;
  }
  std::string digits = std::string(whole) + std::string(fraction);
  digits.append(static_cast<std::size_t>(decimals) - fraction.size(), '0');
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > kDigitsMax || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    return std::nullopt;
  }
  return digits.empty() ? 0 : std::stoll(digits);
}

std::string print_decimal(std::int64_t value, int decimals) {
  std::string digits = std::to_string(value);
  const auto width = static_cast<std::size_t>(decimals);
  digits.insert(0, width + 1 - std::min(digits.size(), width + 1), '0');
  std::string fraction = digits.substr(digits.size() - width);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return digits.substr(0, digits.size() - width) + (fraction.empty() ? "" : "." + fraction);
}

std::optional<std::int64_t> read_size_mib(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) {
      continue;
    }
    const auto thousandths = read_decimal(text.substr(0, text.size() - unit.name.size()), 3);
    if (!thousandths || *thousandths > kMibMax * 1000 / unit.mib) {
      return std::nullopt;
    }
    const std::int64_t scaled = *thousandths * unit.mib;
    return scaled % 1000 == 0 ? std::optional(scaled / 1000) : std::nullopt;
  }
  return std::nullopt;
}

std::string print_size_mib(std::int64_t mib) {
  for (const Unit& unit : kUnits) {
    if (mib > 0 && mib % unit.mib == 0) {
      return std::to_string(mib / unit.mib) + std::string(unit.name);
    }
  }
  return "0MiB";
}

std::string accepted(const FieldRule& rule) {
  switch (rule.kind) {
    case ValueKind::Words:
      return "words of a GPU's name, like A100 or \"A100 80GB\"";
    case ValueKind::Name:
      return "a name of letters, digits, '-', '_' and '.'";
    case ValueKind::Form:
      return "pcie, sxm or unknown";
    case ValueKind::Driver:
      return "real or simulated";
    case ValueKind::Count:
      return "a whole number from " + std::to_string(rule.low) + " to " + std::to_string(rule.high);
    case ValueKind::Money:
      return "a price per GPU-hour with at most 6 decimals, like 1.25, up to " +
             print_decimal(rule.high, 6);
    case ValueKind::Size:
      return "a size with its unit (M, MiB, G, GiB, T or TiB), like 40G";
    case ValueKind::Cores:
      return "a number of CPU cores with at most 3 decimals, like 16, up to " +
             print_decimal(rule.high, 3);
  }
  return "";
}

// The value in normal form; absent if it is none of that kind.
std::optional<std::string> read_text(ValueKind kind, const std::string& value) {
  const std::string lowered = lower_case(value);
  switch (kind) {
    case ValueKind::Words: {
      std::string words = normalise_words(value);
      return words.empty() ? std::nullopt : std::optional(std::move(words));
    }
    case ValueKind::Name:
      return !value.empty() && std::all_of(value.begin(), value.end(), is_name_char)
                 ? std::optional(value)
                 : std::nullopt;
    case ValueKind::Form:
      return lowered == "pcie" || lowered == "sxm" || lowered == "unknown" ? std::optional(lowered)
                                                                           : std::nullopt;
    case ValueKind::Driver:
      return lowered == "real" || lowered == "simulated" ? std::optional(lowered) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> read_number(ValueKind kind, const std::string& value) {
  switch (kind) {
    case ValueKind::Count:
      return read_decimal(value, 0);
    case ValueKind::Money:
      return read_decimal(value, 6);
    case ValueKind::Cores:
      return read_decimal(value, 3);
    case ValueKind::Size:
      return read_size_mib(value);
    default:
      return std::nullopt;
  }
}

// What may be repeated in an error: nothing that a terminal would interpret.
std::string shown(std::string_view text) {
  std::string safe(text.substr(0, 40));
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > 40 ? safe + "…" : safe;
}

}  // namespace

const FieldRule* find_field(std::string_view name) {
  const auto it = std::find_if(kFields.begin(), kFields.end(),
                               [&](const FieldRule& rule) { return rule.name == name; });
  return it != kFields.end() ? &*it : nullptr;
}

const FieldRule& rule_of(QueryField field) {
  const auto it = std::find_if(kFields.begin(), kFields.end(),
                               [&](const FieldRule& rule) { return rule.field == field; });
  check(it != kFields.end(), "offer query: a field without a rule");
  return *it;
}

std::optional<Error> read_value(const FieldRule& rule, const std::string& value,
                                std::size_t position, QueryTerm& term) {
  if (value.empty()) {
    return bad_query(position, "'" + std::string(rule.name) + "' needs a value: " + accepted(rule));
  }
  const auto refuse = [&] {
    return bad_query(position, "'" + shown(value) + "' is not " + accepted(rule));
  };
  if (value.size() > kValueMax) {
    return refuse();
  }
  if (rule.is_text) {
    auto text = read_text(rule.kind, value);
    if (!text) {
      return refuse();
    }
    term.text = std::move(*text);
    return std::nullopt;
  }
  const auto number = read_number(rule.kind, value);
  if (!number || *number < rule.low || *number > rule.high) {
    return refuse();
  }
  term.number = *number;
  return std::nullopt;
}

std::string print_value(const QueryTerm& term) {
  switch (rule_of(term.field).kind) {
    case ValueKind::Count:
      return std::to_string(term.number);
    case ValueKind::Money:
      return print_decimal(term.number, 6);
    case ValueKind::Cores:
      return print_decimal(term.number, 3);
    case ValueKind::Size:
      return print_size_mib(term.number);
    default:
      return term.text.find(' ') == std::string::npos ? term.text : "\"" + term.text + "\"";
  }
}

Error bad_query(std::size_t position, const std::string& what) {
  return Error{ErrorCode::InvalidArgument,
               "query, position " + std::to_string(position + 1) + ": " + what};
}

namespace {

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const FieldRule& rule : kFields) {
    names.emplace_back(rule.name);
  }
  return names;
}

}  // namespace

Error no_such_field(std::size_t position, std::string_view name) {
  const std::vector<std::string> known = field_names();
  std::string list;
  for (const std::string& field : known) {
    list += (list.empty() ? "" : ", ") + field;
  }
  if (name.empty()) {
    return bad_query(position, "a term like gpus>=2 is expected; fields are " + list);
  }
  const std::string close = nearest(lower_case(name), known);
  const std::string hint = close.empty() ? "" : ", did you mean '" + close + "'?";
  return bad_query(position,
                   "unknown field '" + shown(name) + "'" + hint + " (fields: " + list + ")");
}

Error bare_word(std::size_t position, std::string_view word) {
  const bool joins = word.empty() || word == "and" || word == "or";
  if (joins || !nearest(lower_case(word), field_names()).empty()) {
    return no_such_field(position, word);
  }
  return bad_query(position, "'" + shown(word) +
                                 "' is no term; for a GPU of that name write gpu=" + shown(word));
}

std::string_view form_word(Form form) {
  switch (form) {
    case Form::Pcie:
      return "pcie";
    case Form::Sxm:
      return "sxm";
    case Form::Unknown:
      break;
  }
  return "unknown";
}

std::string_view driver_word(Driver driver) {
  return driver == Driver::Real ? "real" : "simulated";
}

}  // namespace bmgpu::core
