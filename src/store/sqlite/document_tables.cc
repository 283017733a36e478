#include "store/sqlite/document_tables.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/journal_rules.h"

namespace bmgpu::store {

Result<void> DocumentTables::prepare() {
  const std::array statements = {
      StatementText{&insert_document_,
                    "INSERT OR REPLACE INTO documents (kind, id, account, checksum, bytes)"
                    " VALUES (?1, ?2, ?3, ?4, ?5)"},
      StatementText{&erase_document_, "DELETE FROM documents WHERE kind = ?1 AND id = ?2"},
      StatementText{&select_document_,
                    "SELECT kind, id, account, checksum, bytes FROM documents"
                    " WHERE kind = ?1 AND id = ?2"},
      // SQLite's integers have a sign, ids do not.
      StatementText{&select_documents_,
                    "SELECT kind, id, account, checksum, bytes FROM documents"
                    " WHERE kind = ?1 ORDER BY id < 0, id"},
      StatementText{&insert_answer_,
                    "INSERT OR REPLACE INTO answers"
                    " (account, key, at_ms, checksum, request, answer)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
      // By arrival, which follows time closely enough: a range instead of a look at every answer.
      StatementText{&drop_answers_,
                    "DELETE FROM answers WHERE arrival < ifnull((SELECT arrival FROM answers"
                    " WHERE at_ms >= ?1 ORDER BY arrival LIMIT 1), 9223372036854775807)"},
      StatementText{&select_answer_,
                    "SELECT at_ms, checksum, request, answer FROM answers"
                    " WHERE account = ?1 AND key = ?2"},
  };
  return prepare_all(database_, statements);
}

Result<void> DocumentTables::change_documents(const std::vector<Document>& documents) {
  for (const Document& document : documents) {
    check_document_kind(document.kind);
    Statement& change = document.bytes.empty() ? erase_document_ : insert_document_;
    change.bind_text(1, document.kind).bind(2, document.id);
    if (!document.bytes.empty()) {
      change.bind(3, document.account.value())
          .bind(4, row_checksum(document))
          .bind_bytes(5, document.bytes);
    }
    if (Result<void> done = change.run(); !done) {
      return done;
    }
  }
  return {};
}

Result<void> DocumentTables::insert_answers(const std::vector<StoredAnswer>& answers) {
  for (const StoredAnswer& answer : answers) {
    insert_answer_.bind(1, answer.account.value())
        .bind_text(2, answer.key)
        .bind(3, answer.at.unix_ms())
        .bind(4, row_checksum(answer))
        .bind_bytes(5, as_bytes(answer.request))
        .bind_bytes(6, answer.answer);
    if (Result<void> done = insert_answer_.run(); !done) {
      return done;
    }
  }
  return {};
}

Result<void> DocumentTables::drop_answers(Instant before) {
  return drop_answers_.bind(1, before.unix_ms()).run();
}

Result<std::optional<StoredAnswer>> DocumentTables::find_answer(AccountId account,
                                                                std::string_view key) {
  Query query(select_answer_);
  select_answer_.bind(1, account.value()).bind_text(2, key);
  const Result<bool> row = select_answer_.step();
  if (!row) {
    return row.error();
  }
  if (!*row) {
    return std::optional<StoredAnswer>();
  }
  StoredAnswer answer;
  answer.account = account;
  answer.key = std::string(key);
  answer.at = Instant(select_answer_.number(0));
  const std::string_view request = select_answer_.bytes(2);
  if (request.size() == answer.request.size()) {
    std::copy(request.begin(), request.end(), answer.request.begin());
  }
  answer.answer = select_answer_.text(3);
  if (select_answer_.id(1) != row_checksum(answer)) {
    return damaged(database_, "a stored answer");
  }
  return std::optional(std::move(answer));
}

Result<Document> DocumentTables::read_document(Statement& row) const {
  Document document{row.text(0), row.id(1), AccountId(row.id(2)), row.text(4)};
  if (row.id(3) != row_checksum(document)) {
    return damaged(database_, "the document " + document.kind + " " + std::to_string(document.id));
  }
  return document;
}

Result<std::optional<Document>> DocumentTables::find_document(std::string_view kind,
                                                              std::uint64_t id) {
  Query query(select_document_);
  select_document_.bind_text(1, kind).bind(2, id);
  const Result<bool> row = select_document_.step();
  if (!row) {
    return row.error();
  }
  if (!*row) {
    return std::optional<Document>();
  }
  Result<Document> document = read_document(select_document_);
  if (!document) {
    return document.error();
  }
  return std::optional(std::move(*document));
}

Result<std::vector<Document>> DocumentTables::documents(std::string_view kind) {
  std::vector<Document> found;
  Query query(select_documents_);
  select_documents_.bind_text(1, kind);
  for (;;) {
    const Result<bool> row = select_documents_.step();
    if (!row) {
      return row.error();
    }
    if (!*row) {
      return found;
    }
    Result<Document> document = read_document(select_documents_);
    if (!document) {
      return document.error();
    }
    found.push_back(std::move(*document));
  }
}

}  // namespace bmgpu::store
