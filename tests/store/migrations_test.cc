#include "store/sqlite/migrations.h"

#include <gtest/gtest.h>

#include <array>

#include "store/temp_dir.h"

namespace bmgpu::store {
namespace {

constexpr std::array kOne = {"CREATE TABLE a (x INTEGER)"};
constexpr std::array kTwo = {"CREATE TABLE a (x INTEGER)",
                             "ALTER TABLE a ADD COLUMN y INTEGER; CREATE TABLE b (z INTEGER)"};
constexpr std::array kBroken = {"CREATE TABLE a (x INTEGER)",
                                "CREATE TABLE b (z INTEGER); CREATE TABLE b (z INTEGER)"};

class MigrationsTest : public testing::Test {
 protected:
  std::unique_ptr<Database> open() {
    return std::move(Database::open(dir_.file("test.db"), Access::Owner).value());
  }
  static std::int64_t version(Database& database) {
    return database.number_of("SELECT version FROM schema_version").value();
  }
  static std::int64_t tables(Database& database) {
    return database.number_of("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").value();
  }

  TempDir dir_;
};

TEST_F(MigrationsTest, TakesANewDatabaseToTheNewestVersion) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(migrate(*database, {"test", kTwo}).ok());
  EXPECT_EQ(version(*database), 2);
  EXPECT_EQ(tables(*database), 3);
}

TEST_F(MigrationsTest, TakesTheMissingStepsAndOnlyThese) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(migrate(*database, {"test", kOne}).ok());
  ASSERT_TRUE(database->execute("INSERT INTO a VALUES (7)").ok());
  ASSERT_TRUE(migrate(*database, {"test", kTwo}).ok());
  ASSERT_TRUE(migrate(*database, {"test", kTwo}).ok());
  EXPECT_EQ(version(*database), 2);
  EXPECT_EQ(database->number_of("SELECT x FROM a").value(), 7);
}

TEST_F(MigrationsTest, RefusesANewerVersionAndLeavesIt) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(migrate(*database, {"test", kTwo}).ok());
  const Result<void> refused = migrate(*database, {"test", kOne});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Refused);
  EXPECT_NE(refused.error().message.find("install the version that wrote it"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(version(*database), 2);
}

TEST_F(MigrationsTest, AStepThatFailsChangesNothing) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(migrate(*database, {"test", kOne}).ok());
  EXPECT_FALSE(migrate(*database, {"test", kBroken}).ok());
  EXPECT_EQ(version(*database), 1);
  EXPECT_EQ(tables(*database), 2);
  EXPECT_TRUE(migrate(*database, {"test", kTwo}).ok());  // control
}

TEST_F(MigrationsTest, RefusesADatabaseOfSomethingElse) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(migrate(*database, {"history", kOne}).ok());
  const Result<void> refused = migrate(*database, {"journal", kOne});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::DataLoss);
  EXPECT_NE(refused.error().message.find("not a journal of bmd but history"), std::string::npos)
      << refused.error().message;
}

TEST_F(MigrationsTest, RefusesTablesWithoutAVersion) {
  const std::unique_ptr<Database> database = open();
  ASSERT_TRUE(database->execute("CREATE TABLE other (x INTEGER)").ok());
  EXPECT_FALSE(migrate(*database, {"journal", kOne}).ok());
  EXPECT_EQ(tables(*database), 1);
}

}  // namespace
}  // namespace bmgpu::store
