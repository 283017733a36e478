#include <gmock/gmock.h>
#include <sys/stat.h>

#include "bmgpu/v1/market.pb.h"
#include "cli/copy_tree.h"
#include "command_line.h"

namespace bmgpu::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

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

TarEntry entry(TarEntry::Kind kind, const std::string& path, const std::string& link = "",
               std::int64_t size = 0) {
  return {.kind = kind, .path = path, .link_target = link, .size = size, .mode = 0755};
}

Result<CopyCount> unpack(const std::string& archive, const std::string& into,
                         const std::string& root) {
  Result<std::unique_ptr<TreeTarget>> target = TreeTarget::create(into, root);
  if (!target) {
    return target.error();
  }
  TarReader reader(**target);
  Result<void> taken = reader.take(archive);
  taken = taken ? reader.finish() : taken;
  return taken ? Result<CopyCount>((*target)->count()) : taken.error();
}

TEST(CopyTreeTest, WhatIsPackedComesOutAgain) {
  const TemporaryFolder from;
  const TemporaryFolder into;
  from.write("t/a.txt", "abc");
  from.write("t/d/b.sh", "#!");
  ASSERT_EQ(::chmod(from.path("t/d/b.sh").c_str(), 0755), 0);
  fs::create_directory(from.path("t/empty"));
  fs::create_symlink("d/b.sh", from.path("t/l"));
  std::string archive;
  TarWriter writer([&](std::string_view bytes) {
    archive += bytes;
    return Result<void>();
  });
  Result<CopyCount> packed = pack_tree(from.path("t"), "renamed", writer);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(packed->files, 3u);
  Result<CopyCount> unpacked = unpack(archive, into.path(), "again");
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(unpacked->files, 3u);
  EXPECT_EQ(unpacked->bytes, 5);
  EXPECT_EQ(into.read("again/a.txt"), "abc");
  EXPECT_TRUE(fs::is_directory(into.path("again/empty")));
  EXPECT_EQ(fs::read_symlink(into.path("again/l")), "d/b.sh");
  EXPECT_NE(fs::status(into.path("again/d/b.sh")).permissions() & fs::perms::owner_exec,
            fs::perms::none);
}

TEST(CopyTreeTest, NothingIsWrittenOutside) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("into"));
  folder.write("outside/kept", "old");
  const std::string into = folder.path("into");
  using enum TarEntry::Kind;
  EXPECT_FALSE(
      unpack(archive_of({{entry(File, "r/../../outside/kept", "", 3), "new"}}), into, "r"));
  // A link in the archive, then a file through it.
  const std::string through = archive_of(
      {{entry(Link, "r/l", "../../outside"), ""}, {entry(File, "r/l/kept", "", 3), "new"}});
  Result<CopyCount> count = unpack(through, into, "r");
  ASSERT_TRUE(count) << count.error().message;
  ASSERT_EQ(count->left_out.size(), 1u);
  EXPECT_EQ(count->left_out[0].path, "r/l");
  EXPECT_EQ(count->left_out[0].why, "a link that leads out");
  // A link that was there before.
  fs::create_directory_symlink("../../outside", folder.path("into/r/m"));
  EXPECT_FALSE(unpack(archive_of({{entry(File, "r/m/kept", "", 3), "new"}}), into, "r"));
  fs::create_symlink("../../outside/kept", folder.path("into/r/n"));
  EXPECT_TRUE(unpack(archive_of({{entry(File, "r/n", "", 3), "new"}}), into, "r"));
  EXPECT_EQ(folder.read("into/r/n"), "new");  // the link was replaced, not followed
  // An absolute path, and the root's own name, change nothing.
  EXPECT_TRUE(unpack(archive_of({{entry(File, "/etc/x", "", 1), "x"}}), into, "r"));
  EXPECT_EQ(folder.read("into/r/x"), "x");
  EXPECT_EQ(folder.read("outside/kept"), "old");
}

TEST(CopyTreeTest, AFurtherNameOfAFileIsMade) {
  using enum TarEntry::Kind;
  const TemporaryFolder into;
  into.write("outside", "old");
  Result<CopyCount> count = unpack(archive_of({{entry(Folder, "r"), ""},
                                               {entry(File, "r/a", "", 3), "abc"},
                                               {entry(HardLink, "r/b", "r/a"), ""},
                                               {entry(HardLink, "r/c", "../outside"), ""}}),
                                   into.path(), "again");
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(into.read("again/b"), "abc");
  EXPECT_EQ(count->files, 2u);
  ASSERT_EQ(count->left_out.size(), 1u);
  EXPECT_EQ(count->left_out[0].path, "r/c");
  EXPECT_FALSE(unpack(archive_of({{entry(HardLink, "r/b", "r/none"), ""}}), into.path(), "x"));
}

// The archive end of a job: remembers what comes in, or sends an archive out.
class CopyTest : public testing::Test {
 protected:
  CopyTest() {
    bmcli.market.on<v1::GetOrderRequest, v1::Order>(
        "GetOrder", [this](const v1::GetOrderRequest& request, v1::Order& order) {
          order.set_id(request.id());
          order.set_state(state);
          return Result<void>();
        });
    bmcli.market.on_socket([this](const std::string& message) {
      v1::ExecClientFrame frame;
      frame.ParseFromString(message);
      std::vector<std::string> answers;
      if (frame.has_start()) {
        start = frame.start();
      }
      received += frame.has_stdin() ? frame.stdin() : "";
      if (frame.stdin_closed()) {
        for (std::size_t at = 0; at < to_send.size(); at += 700) {
          v1::ExecServerFrame piece;
          piece.set_stdout(to_send.substr(at, 700));
          answers.push_back(piece.SerializeAsString());
        }
        v1::ExecServerFrame last;
        last.set_exit_code(0);
        answers.push_back(last.SerializeAsString());
      }
      return answers;
    });
  }
  CommandLine bmcli;
  v1::OrderState state = v1::ORDER_STATE_RUNNING;
  v1::ExecStart start;
  std::string received;
  std::string to_send;
};

TEST_F(CopyTest, UploadsUnderTheRightName) {
  const std::string source = bmcli.folder().write("src/x.txt", "hello");
  ASSERT_EQ(bmcli.run({"cp", source, "order-1:/workspace/"}).code, 0);
  EXPECT_EQ(start.archive(), v1::ARCHIVE_DIRECTION_UPLOAD);
  EXPECT_EQ(start.archive_path(), "/workspace");
  ASSERT_TRUE(unpack(received, bmcli.folder().path(), "x.txt"));
  EXPECT_EQ(bmcli.folder().read("x.txt"), "hello");
  ASSERT_EQ(bmcli.run({"cp", source, "order-1:/workspace/y"}).code, 0);
  EXPECT_EQ(start.archive_path(), "/workspace");
  const Ran ran = bmcli.run({"cp", bmcli.folder().path("src"), "order-1:/", "--json"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(start.archive_path(), "/");
  EXPECT_THAT(ran.out, HasSubstr("\"files\":1,\"bytes\":5"));
}

TEST_F(CopyTest, DownloadsToANameOrIntoAFolder) {
  using enum TarEntry::Kind;
  to_send = archive_of({{entry(Folder, "out"), ""}, {entry(File, "out/a", "", 3), "abc"}});
  const TemporaryFolder here;
  ASSERT_EQ(bmcli.run({"cp", "order-1:/workspace/out", here.path()}).code, 0);
  EXPECT_EQ(start.archive_path(), "/workspace/out");
  EXPECT_EQ(here.read("out/a"), "abc");
  ASSERT_EQ(bmcli.run({"cp", "order-1:/workspace/out/", here.path("new")}).code, 0);
  EXPECT_EQ(here.read("new/a"), "abc");
  EXPECT_EQ(bmcli.run({"cp", "order-1:/x", here.path("none/there")}).code, 2);
}

TEST_F(CopyTest, NamesWhatItLeavesOutAndWhy) {
  const TemporaryFolder from;
  from.write("t/a", "x");
  ASSERT_EQ(::mkfifo(from.path("t/pipe").c_str(), 0600), 0);
  const Ran ran = bmcli.run({"cp", from.path("t"), "order-1:/workspace/"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("left out: t/pipe (a pipe)"));
  EXPECT_THAT(ran.out, HasSubstr("copied 1 file,"));
  const Ran json = bmcli.run({"cp", from.path("t"), "order-1:/workspace/", "--json"});
  ASSERT_TRUE(one_document(json.out)) << json.out;
  EXPECT_THAT(json.out, HasSubstr("\"left_out\":[{\"path\":\"t/pipe\",\"why\":\"a pipe\"}]"));
}

TEST_F(CopyTest, ASourceThatIsNoFileOrFolderIsAnErrorBeforeAnythingIsAsked) {
  const TemporaryFolder from;
  ASSERT_EQ(::mkfifo(from.path("pipe").c_str(), 0600), 0);
  const Ran pipe = bmcli.run({"cp", from.path("pipe"), "order-1:/workspace/"});
  EXPECT_EQ(pipe.code, 2);
  EXPECT_THAT(pipe.err, HasSubstr("/pipe is a pipe; only files and folders can be copied"));
  EXPECT_THAT(bmcli.run({"cp", "/dev/null", "order-1:/x"}).err, HasSubstr("null is a device"));
  EXPECT_TRUE(bmcli.market.calls().empty());
}

TEST_F(CopyTest, ASourceInTheJobThatIsNoFileOrFolderIsAnError) {
  std::string archive = archive_of({{entry(TarEntry::Kind::Pipe, "pipe"), ""}});
  to_send = archive;
  const TemporaryFolder here;
  const Ran ran = bmcli.run({"cp", "order-1:/workspace/pipe", here.path()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("order-1:/workspace/pipe is a pipe"));
  EXPECT_EQ(ran.out, "");
  to_send = archive_of(
      {{entry(TarEntry::Kind::Folder, "d"), ""}, {entry(TarEntry::Kind::Device, "d/null"), ""}});
  const Ran within = bmcli.run({"cp", "order-1:/workspace/d", here.path()});
  EXPECT_EQ(within.code, 0);
  EXPECT_THAT(within.err, HasSubstr("left out: d/null (a device)"));
}

TEST_F(CopyTest, SaysWhatToDoNext) {
  const TemporaryFolder here;
  const Ran missing = bmcli.run({"cp", here.path("none"), "order-1:/x"});
  EXPECT_THAT(missing.err, HasSubstr("none: No such file or directory"));
  EXPECT_THAT(missing.err, HasSubstr("check the path"));
  here.write("folder/file", "x");
  to_send = archive_of({{entry(TarEntry::Kind::File, "folder", "", 3), "abc"}});
  const Ran folder = bmcli.run({"cp", "order-1:/workspace/folder", here.path()});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("folder: Is a directory; remove it or name another target"));
  const Ran no_folder = bmcli.run({"cp", "order-1:/a", here.path("none/b")});
  EXPECT_THAT(no_folder.err, HasSubstr("none: No such file or directory; check the path"));
  EXPECT_THAT(bmcli.run({"cp", "a", "b"}).err, HasSubstr("as ID:PATH"));
  state = v1::ORDER_STATE_WAITING;
  const Ran waiting = bmcli.run({"cp", here.path("folder"), "order-1:/x"});
  EXPECT_EQ(waiting.code, 1);
  EXPECT_THAT(waiting.err, HasSubstr("bmcli wait order-1 --for running"));
  state = v1::ORDER_STATE_ENDED;
  EXPECT_THAT(bmcli.run({"cp", here.path("folder"), "order-1:/x"}).err,
              HasSubstr("bmcli logs order-1"));
}

TEST_F(CopyTest, RefusesWhatIsNoCopy) {
  EXPECT_EQ(bmcli.run({"cp", "a", "b"}).code, 2);
  EXPECT_EQ(bmcli.run({"cp", "order-1:/a", "order-2:/b"}).code, 2);
  EXPECT_EQ(bmcli.run({"cp", "order-1:relative", "."}).code, 2);
  EXPECT_EQ(bmcli.run({"cp", "order-1:/", "."}).code, 2);
  EXPECT_EQ(bmcli.run({"cp", bmcli.folder().path("none"), "order-1:/x"}).code, 2);
  EXPECT_EQ(bmcli.run({"cp", "./odd:name", "order-1:/x"}).code, 2);  // local, and not there
}

}  // namespace
}  // namespace bmgpu::cli
