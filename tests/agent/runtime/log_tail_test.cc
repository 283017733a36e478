#include "agent/runtime/log_tail.h"

#include <gtest/gtest.h>

#include <fstream>

#include "agent/runtime/temp_dir.h"

namespace bmgpu::agent {
namespace {

class LogTailTest : public testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(path(), std::ios::app | std::ios::binary) << text;
  }
  std::string path() const { return dir_.file("log"); }
  TempDir dir_;
};

TEST_F(LogTailTest, ParsesTimeStreamAndText) {
  const LogEntry entry =
      parse_log_line("2026-11-30T18:29:03.843617053+00:00 stderr F hello  world ", 7);
  EXPECT_EQ(entry.sequence, 7u);
  EXPECT_EQ(entry.time_unix_ms, 1796063343843);
  EXPECT_EQ(entry.source, LogSource::Stderr);
  EXPECT_FALSE(entry.partial);
  EXPECT_EQ(entry.text, "hello  world ");
}

TEST_F(LogTailTest, ReadsZonesAsUtc) {
  EXPECT_EQ(parse_log_line("2026-11-30T19:29:03.8+01:00 stdout F x", 1).time_unix_ms,
            parse_log_line("2026-11-30T18:29:03.800000Z stdout F x", 1).time_unix_ms);
  EXPECT_EQ(parse_log_line("2026-11-30T16:59:03.8-01:30 stdout F x", 1).time_unix_ms,
            parse_log_line("2026-11-30T18:29:03.8Z stdout F x", 1).time_unix_ms);
}

TEST_F(LogTailTest, KeepsEmptyAndPartialLines) {
  EXPECT_EQ(parse_log_line("2026-11-30T18:29:03Z stdout F ", 1).text, "");
  EXPECT_EQ(parse_log_line("2026-11-30T18:29:03Z stdout F", 1).source, LogSource::Stdout);
  const LogEntry partial = parse_log_line("2026-11-30T18:29:03Z stdout P half", 1);
  EXPECT_TRUE(partial.partial);
  EXPECT_EQ(partial.text, "half");
}

TEST_F(LogTailTest, WhatDoesNotParseKeepsItsNumber) {
  for (const char* line :
       {"", "x", "2026-13-30T18:29:03Z stdout F x", "a b c d", "2026-11-30T18:29:03Z stdin F x",
        "2026-11-30T18:29:03Z stdout Q x", "2026-11-30T18:29:03Q stdout F x",
        "2026-11-30T18:29:03+0100 stdout F"}) {
    const LogEntry entry = parse_log_line(line, 3);
    EXPECT_EQ(entry.source, LogSource::System) << line;
    EXPECT_EQ(entry.sequence, 3u);
    EXPECT_EQ(entry.text, line);
  }
}

TEST_F(LogTailTest, AMissingFileHasNoLines) {
  LogTail tail(path());
  Result<std::vector<LogEntry>> lines = tail.read(10, 1000);
  ASSERT_TRUE(lines.ok());
  EXPECT_TRUE(lines->empty());
}

TEST_F(LogTailTest, ATornEndIsReturnedOnceItIsWhole) {
  append("2026-11-30T18:29:03Z stdout F one\n2026-11-30T18:29:03Z stdo");
  LogTail tail(path());
  Result<std::vector<LogEntry>> lines = tail.read(10, 1000);
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ(lines->front().text, "one");
  EXPECT_TRUE(tail.read(10, 1000)->empty());
  append("ut F two\n");
  lines = tail.read(10, 1000);
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ(lines->front().text, "two");
  EXPECT_EQ(lines->front().sequence, 2u);
}

TEST_F(LogTailTest, EveryCutIntoReadsGivesTheSameLines) {
  for (int i = 1; i <= 500; ++i) {
    append("2026-11-30T18:29:03Z stdout F " + std::string(i * 7 % 900, 'x') + std::to_string(i) +
           "\n");
  }
  LogTail whole(path());
  const std::vector<LogEntry> expected = *whole.read(1000, 1 << 20);
  ASSERT_EQ(expected.size(), 500u);
  for (const std::size_t lines_max : {1, 3, 100}) {
    LogTail tail(path());
    std::vector<LogEntry> all;
    while (true) {
      const std::vector<LogEntry> part = *LogTail(path(), tail.position()).read(lines_max, 500);
      const std::vector<LogEntry> same = *tail.read(lines_max, 500);
      ASSERT_EQ(part, same);
      if (part.empty()) {
        break;
      }
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected);
  }
}

TEST_F(LogTailTest, SeeksBothWays) {
  for (int i = 1; i <= 50; ++i) {
    append("2026-11-30T18:29:03Z stdout F " + std::to_string(i) + "\n");
  }
  LogTail tail(path());
  ASSERT_TRUE(tail.seek(40).ok());
  EXPECT_EQ(tail.read(1, 100)->front().text, "40");
  ASSERT_TRUE(tail.seek(3).ok());
  EXPECT_EQ(tail.read(1, 100)->front().text, "3");
  ASSERT_TRUE(tail.seek(90).ok());
  EXPECT_EQ(tail.position().next_sequence, 51u);
}

TEST_F(LogTailTest, AFileThatBecameShorterIsDataLoss) {
  append("2026-11-30T18:29:03Z stdout F one\n");
  LogTail tail(path());
  ASSERT_EQ(tail.read(10, 1000)->size(), 1u);
  std::ofstream(path(), std::ios::trunc).close();
  Result<std::vector<LogEntry>> lines = tail.read(10, 1000);
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().code, ErrorCode::DataLoss);
}

}  // namespace
}  // namespace bmgpu::agent
