// Documents and stored answers, as tables. Private to src/store/sqlite.
#pragma once

#include <optional>
#include <vector>

#include "store/journal.h"
#include "store/sqlite/rows.h"

namespace bmgpu::store {

class DocumentTables {
 public:
  explicit DocumentTables(Database& database) : database_(database) {}

  Result<void> prepare();

  // REQUIRES: inside a transaction.
  Result<void> change_documents(const std::vector<Document>& documents);
  Result<void> insert_answers(const std::vector<StoredAnswer>& answers);
  Result<void> drop_answers(Instant before);

  Result<std::optional<StoredAnswer>> find_answer(AccountId account, std::string_view key);
  Result<std::optional<Document>> find_document(std::string_view kind, std::uint64_t id);
  Result<std::vector<Document>> documents(std::string_view kind);

 private:
  Result<Document> read_document(Statement& row) const;

  Database& database_;
  Statement insert_document_, erase_document_, select_document_, select_documents_;
  Statement insert_answer_, drop_answers_, select_answer_;
};

}  // namespace bmgpu::store
