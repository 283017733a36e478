#include "cli/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace bmgpu::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "kind path -> link (mode) content" for each entry.
class Lines : public TarTarget {
 public:
  Result<void> begin(const TarEntry& entry) override {
    constexpr std::string_view kKinds = "fdlo";
    line_ = std::string(1, kKinds[static_cast<std::size_t>(entry.kind)]) + " " + entry.path;
    line_ += entry.kind == TarEntry::Kind::Link ? " -> " + entry.link_target : "";
    line_ += entry.kind == TarEntry::Kind::File ? " [" : "";
    return {};
  }
  Result<void> content(std::string_view bytes) override {
    line_ += bytes;
    return {};
  }
  Result<void> end() override {
    lines.push_back(line_);
    return {};
  }
  std::vector<std::string> lines;

 private:
  std::string line_;
};

std::string archive_of(const std::vector<std::pair<TarEntry, std::string>>& entries) {
  std::string archive;
  TarWriter writer([&](std::string_view bytes) {
    archive += bytes;
    return Result<void>();
  });
  for (const auto& [entry, content] : entries) {
    EXPECT_TRUE(writer.header(entry));
    EXPECT_TRUE(writer.content(content));
    EXPECT_TRUE(writer.pad(static_cast<std::int64_t>(content.size())));
  }
  EXPECT_TRUE(writer.finish());
  return archive;
}

TarEntry file(const std::string& path, std::int64_t size) {
  return {.kind = TarEntry::Kind::File, .path = path, .link_target = {}, .size = size};
}

TEST(TarTest, ReadsWhatItWritesInPiecesOfAnySize) {
  const std::string longer(300, 'p');
  const std::string archive = archive_of(
      {{{.kind = TarEntry::Kind::Folder, .path = "d", .link_target = {}, .mode = 0755}, ""},
       {file("d/a", 3), "abc"},
       {file("d/empty", 0), ""},
       {file("d/block", 512), std::string(512, 'x')},
       {file("d/" + longer, 1), "y"},
       {{.kind = TarEntry::Kind::Link, .path = "d/l", .link_target = "a"}, ""},
       {{.kind = TarEntry::Kind::Link, .path = "d/m", .link_target = longer}, ""}});
  EXPECT_EQ(archive.size() % 512, 0u);
  for (const std::size_t step :
       {std::size_t{1}, std::size_t{7}, std::size_t{512}, archive.size()}) {
    Lines lines;
    TarReader reader(lines);
    for (std::size_t at = 0; at < archive.size(); at += step) {
      ASSERT_TRUE(reader.take(std::string_view(archive).substr(at, step)));
    }
    EXPECT_TRUE(reader.finish());
    EXPECT_THAT(
        lines.lines,
        ElementsAre("d d/", "f d/a [abc", "f d/empty [", "f d/block [" + std::string(512, 'x'),
                    "f d/" + longer + " [y", "l d/l -> a", "l d/m -> " + longer));
  }
}

TEST(TarTest, DamageIsFoundAndNeverRead) {
  const std::string good = archive_of({{file("a", 600), std::string(600, 'z')}});
  for (std::size_t at = 0; at < 512; at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    Lines lines;
    TarReader reader(lines);
    const Result<void> taken = reader.take(bad);
    const bool sum_field = at >= 148 && at < 156;
    EXPECT_TRUE(!taken || sum_field) << at;
  }
  for (const std::size_t size : {std::size_t{100}, std::size_t{512}, std::size_t{1111}}) {
    Lines lines;
    TarReader reader(lines);
    EXPECT_TRUE(reader.take(std::string_view(good).substr(0, size)));
    EXPECT_THAT(reader.finish().error().message, HasSubstr("middle of an entry"));
  }
}

TEST(TarTest, HostileExtendedHeadersAreRefused) {
  for (const char* record : {"", "9", "99999 path=a\n", "5 a", "12 size=-1\n",
                             "18446744073709551616 a=b\n", "12 size=9x\n", "3 =\n"}) {
    std::string archive =
        archive_of({{file("pax", static_cast<std::int64_t>(std::strlen(record))), record}});
    archive[156] = 'x';
    // The checksum follows the change of the kind from '0' to 'x'.
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < 512; ++i) {
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(archive[i]);
    }
    for (std::size_t i = 6; i-- > 0; sum >>= 3) {
      archive[148 + i] = static_cast<char>('0' + (sum & 7));
    }
    Lines lines;
    TarReader reader(lines);
    const Result<void> taken = reader.take(archive);
    EXPECT_EQ(taken.ok(), *record == '\0') << record;
    EXPECT_THAT(lines.lines, ElementsAre()) << record;
  }
}

}  // namespace
}  // namespace bmgpu::cli
