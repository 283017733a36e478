#include "store/sqlite/rows.h"

#include <xxhash.h>

#include "store/encoding.h"

namespace bmgpu::store {
namespace {

std::uint64_t combine(std::uint64_t seed, std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

std::uint64_t row_checksum(std::initializer_list<std::uint64_t> numbers, std::string_view bytes) {
  const std::string_view raw(reinterpret_cast<const char*>(numbers.begin()),
                             numbers.size() * sizeof(std::uint64_t));
  return combine(checksum(raw), bytes);
}

std::uint64_t row_checksum(const Document& document) {
  return combine(row_checksum({document.id, document.account.value()}, document.kind),
                 document.bytes);
}

std::uint64_t row_checksum(const StoredAnswer& answer) {
  const auto at_ms = static_cast<std::uint64_t>(answer.at.unix_ms());
  const std::uint64_t head = row_checksum({answer.account.value(), at_ms}, answer.key);
  return combine(combine(head, as_bytes(answer.request)), answer.answer);
}

std::string_view as_bytes(const RequestHash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

Result<void> prepare_all(Database& database, std::span<const StatementText> statements) {
  for (const StatementText& text : statements) {
    Result<Statement> prepared = database.prepare(text.sql);
    if (!prepared) {
      return prepared.error();
    }
    *text.statement = std::move(*prepared);
  }
  return {};
}

Error damaged(const Database& database, const std::string& what) {
  return {ErrorCode::DataLoss,
          database.path() + " is damaged (" + what + "): restore it from a backup"};
}

}  // namespace bmgpu::store
