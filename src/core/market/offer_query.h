// The query language of `list`: 'gpu=A100 gpus>=2 price<1.2'. docs/reference/query.md is its
// manual.
//
// A query is a list of terms, all of which an offer must meet. What it does not know it refuses,
// naming the position and the nearest known word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/views.h"

namespace bmgpu::core {

// One row of `list` with what only bmd knows.
struct OfferRow {
  OfferView offer;
  std::string node_name;
  std::string site_name;
  std::int64_t health = 100;  // 0 to 100, the lowest of the node's listed GPUs
};

enum class QueryField {
  Gpu,     // words of the model
  Gpus,    // free now
  Total,   // healthy and listed
  Price,   // per GPU-hour, of the first slot
  Memory,  // of one GPU
  Node,    // name
  Site,    // name
  Form,
  Driver,
  Health,
  Cpu,      // of the node
  Ram,      // of the node
  Scratch,  // of the node
};
enum class QueryOperator { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual };

struct QueryTerm {
  QueryField field = QueryField::Gpu;
  QueryOperator comparison = QueryOperator::Equal;
  std::string text;         // of fields that are text, in normal form
  std::int64_t number = 0;  // of the others: count, micro-units, MiB, thousandths of a CPU
  bool operator==(const QueryTerm&) const = default;
};
struct OfferQuery {
  std::vector<QueryTerm> terms;
  bool operator==(const OfferQuery&) const = default;
};

inline constexpr std::size_t kQueryBytesMax = 1024;
inline constexpr std::size_t kQueryTermsMax = 32;

// Empty text is the query without terms. Errors are InvalidArgument.
Result<OfferQuery> parse_offer_query(std::string_view text);

// The normal form; parse_offer_query gives an equal query from it.
std::string print(const QueryTerm& term);
std::string print(const OfferQuery& query);

bool matches(const QueryTerm& term, const OfferRow& row);

struct FilteredOffers {
  std::vector<OfferRow> rows;        // that meet every term, in the order given
  std::vector<std::size_t> removed;  // by each term, of those that the terms before it left
};
FilteredOffers filter_offers(const OfferQuery& query, std::vector<OfferRow> rows);

}  // namespace bmgpu::core
