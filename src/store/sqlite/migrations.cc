#include "store/sqlite/migrations.h"

#include <string>

namespace bmgpu::store {
namespace {

constexpr const char* kVersionTable =
    "CREATE TABLE schema_version (what TEXT NOT NULL, version INTEGER NOT NULL)";

Result<void> create_version_table(Database& database, std::string_view what) {
  return database.transaction([&]() -> Result<void> {
    if (Result<void> created = database.execute(kVersionTable); !created) {
      return created;
    }
    Result<Statement> insert = database.prepare("INSERT INTO schema_version VALUES (?1, 0)");
    if (!insert) {
      return insert.error();
    }
    return insert->bind_text(1, what).run();
  });
}

Result<void> take_step(Database& database, std::size_t version, const char* sql) {
  return database.transaction([&]() -> Result<void> {
    if (Result<void> taken = database.execute(sql); !taken) {
      return taken;
    }
    Result<Statement> note = database.prepare("UPDATE schema_version SET version = ?1");
    if (!note) {
      return note.error();
    }
    return note->bind(1, std::uint64_t{version}).run();
  });
}

}  // namespace

Result<void> migrate(Database& database, const Migrations& migrations) {
  const Result<std::int64_t> tables = database.number_of("SELECT count(*) FROM sqlite_schema");
  if (!tables) {
    return tables.error();
  }
  if (*tables == 0) {
    if (Result<void> created = create_version_table(database, migrations.what); !created) {
      return created;
    }
  }
  const Result<std::int64_t> is_ours = database.number_of(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'");
  if (!is_ours) {
    return is_ours.error();
  }
  const Result<std::string> what = *is_ours == 0
                                       ? Result<std::string>(std::string("something else"))
                                       : database.text_of("SELECT what FROM schema_version");
  if (!what) {
    return what.error();
  }
  if (*what != migrations.what) {
    return Error{ErrorCode::DataLoss, database.path() + " is not a " +
                                          std::string(migrations.what) + " of bmd but " + *what +
                                          ": name the right file, or move it away"};
  }
  const Result<std::int64_t> version = database.number_of("SELECT version FROM schema_version");
  if (!version) {
    return version.error();
  }
  const std::size_t known = migrations.steps.size();
  if (*version < 0 || static_cast<std::size_t>(*version) > known) {
    return Error{ErrorCode::Refused, database.path() + " has format " + std::to_string(*version) +
                                         ", this version reads formats up to " +
                                         std::to_string(known) +
                                         ": install the version that wrote it, or a newer one"};
  }
  for (std::size_t next = static_cast<std::size_t>(*version) + 1; next <= known; ++next) {
    if (Result<void> taken = take_step(database, next, migrations.steps[next - 1]); !taken) {
      return taken;
    }
  }
  return {};
}

}  // namespace bmgpu::store
