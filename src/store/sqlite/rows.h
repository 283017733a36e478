// What the tables of a journal have in common: row checksums, prepared statements, damage. Private
// to src/store/sqlite.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "store/journal.h"
#include "store/sqlite/database.h"

namespace bmgpu::store {

// Over the numbers of a row and its bytes: a row that is moved or mixed up is seen too.
std::uint64_t row_checksum(std::initializer_list<std::uint64_t> numbers, std::string_view bytes);
std::uint64_t row_checksum(const Document& document);
std::uint64_t row_checksum(const StoredAnswer& answer);

std::string_view as_bytes(const RequestHash& hash);

struct StatementText {
  Statement* statement;
  std::string_view sql;
};
Result<void> prepare_all(Database& database, std::span<const StatementText> statements);

// `what` names the row: "the batch of event 17".
Error damaged(const Database& database, const std::string& what);

}  // namespace bmgpu::store
