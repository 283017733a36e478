// Exec and archives against a real podman. Needs root.
#include "agent/runtime/exec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "agent/runtime/files.h"
#include "agent/runtime/node_fixture.h"
#include "agent/runtime/service.h"
#include "agent/runtime/subprocess.h"

namespace bmgpu::agent {
namespace {

// Collects what a session says.
class Sink {
 public:
  ExecCallbacks callbacks() {
    ExecCallbacks out;
    out.on_stdout = [this](std::string_view bytes) { add(out_, bytes); };
    out.on_stderr = [this](std::string_view bytes) { add(err_, bytes); };
    out.on_end = [this](const ExecEnd& end) {
      const std::lock_guard lock(mutex_);
      end_ = end;
      changed_.notify_all();
    };
    return out;
  }
  bool wait_for(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return out_.find(text) != std::string::npos; });
  }
  Result<int> end() { return whole_end().outcome; }
  ExecEnd whole_end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return end_.has_value(); });
    return end_.value_or(ExecEnd{Error{ErrorCode::DeadlineExceeded, "the session did not end"}});
  }
  std::string out() {
    const std::lock_guard lock(mutex_);
    return out_;
  }
  std::string err() {
    const std::lock_guard lock(mutex_);
    return err_;
  }

 private:
  void add(std::string& to, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    to += bytes;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_;
  std::string err_;
  std::optional<ExecEnd> end_;
};

class ExecTest : public testing::Test {
 protected:
  ExecTest() {
    v1::AttemptSpec spec = node_.spec("exec sleep 1000");
    spec.mutable_job()->set_has_workdir(true);
    dir_.emplace(node_.start(spec));
    EXPECT_TRUE(node_.wait_for(*dir_, v1::ATTEMPT_PHASE_RUNNING));
    EXPECT_EQ(dir_->read_status()->phase(), v1::ATTEMPT_PHASE_RUNNING)
        << dir_->read_status()->detail();
    container_ = container_name(node_.options().market, {spec.lease(), 0, 1});
  }
  ExecOptions exec(const std::string& script) {
    ExecOptions options;
    options.socket = node_.runtime().socket();
    options.container = container_;
    options.command = {"sh", "-c", script};
    return options;
  }
  ArchiveOptions archive(ArchiveWay way, const std::string& path) {
    return {node_.runtime().facts(), container_, way, path};
  }
  // Uploads a tar to a folder of the job.
  Result<int> upload(const std::string& tar, const std::string& path) {
    Sink sink;
    const std::unique_ptr<ExecSession> session =
        start_archive(archive(ArchiveWay::Upload, path), sink.callbacks());
    for (std::size_t at = 0; at < tar.size();) {
      const std::string_view part = std::string_view(tar).substr(at, 32 * 1024);
      if (session->write(part)) {
        at += part.size();
      } else if (!eventually([&] { return session->room() >= part.size(); },
                             std::chrono::seconds(5))) {
        break;
      }
    }
    session->close_input();
    return sink.end();
  }
  static std::string mount_namespace(const std::string& of) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + of + "/ns/mnt", gone).string();
  }
  // Processes of podman with a thread in that mount namespace.
  static std::vector<int> engines_in(const std::string& mount_namespace_text) {
    std::vector<int> found;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      const std::string pid = process.path().filename().string();
      const Result<std::string> name = read_file("/proc/" + pid + "/comm");
      std::error_code gone;
      if (!name.ok() || *name != "podman\n") {
        continue;
      }
      for (std::filesystem::directory_iterator thread("/proc/" + pid + "/task", gone), end;
           !gone && thread != end; thread.increment(gone)) {
        if (mount_namespace(pid + "/task/" + thread->path().filename().string()) ==
            mount_namespace_text) {
          found.push_back(std::stoi(pid));
          break;
        }
      }
    }
    return found;
  }
  std::string tar_of(const std::string& folder) {
    const Result<std::string> tar =
        run_ok({"tar", "-C", folder, "-cf", "-", "."},
               RunOptions{std::chrono::seconds(20), "", std::size_t{64} << 20, -1});
    EXPECT_TRUE(tar.ok());
    return tar.ok() ? *tar : "";
  }

  TestNode node_;
  std::optional<AttemptDir> dir_;
  std::string container_;
};

TEST_F(ExecTest, CarriesInputBothOutputsAndTheExitCode) {
  Sink sink;
  const auto session = start_exec(exec("pwd; cat; echo err >&2; exit 7"), sink.callbacks());
  EXPECT_TRUE(session->write("hello "));
  EXPECT_TRUE(session->write("world\n"));
  session->close_input();
  EXPECT_EQ(*sink.end(), 7);
  EXPECT_EQ(sink.out(), "/workspace\nhello world\n");
  EXPECT_EQ(sink.err(), "err\n");
  EXPECT_FALSE(session->write("late"));
}

TEST_F(ExecTest, ATerminalHasASizeThatChanges) {
  Sink sink;
  ExecOptions options = exec("while stty size; do read line || break; done");
  options.terminal = true;
  options.size = {41, 101};
  const auto session = start_exec(options, sink.callbacks());
  // The first size is set just after the start, so it is asked for until it is there.
  ASSERT_TRUE(eventually([&] { return session->write("\n") && sink.wait_for("41 101"); }));
  session->resize({50, 120});
  ASSERT_TRUE(eventually([&] { return session->write("\n") && sink.wait_for("50 120"); }));
  EXPECT_TRUE(session->write("\x04"));
  EXPECT_EQ(*sink.end(), 0);
}

TEST_F(ExecTest, MuchOutputArrivesWholeAndSlowReadersAreWaitedFor) {
  Sink sink;
  const auto session = start_exec(exec("seq 1 200000"), sink.callbacks());
  EXPECT_EQ(*sink.end(), 0);
  std::string expected;
  for (int i = 1; i <= 200000; ++i) {
    expected += std::to_string(i) + "\n";
  }
  EXPECT_EQ(sink.out(), expected);
}

TEST_F(ExecTest, InputBeyondItsLimitIsRefused) {
  Sink sink;
  const auto session = start_exec(exec("sleep 1000"), sink.callbacks());
  const std::string block(64 * 1024, 'x');
  EXPECT_TRUE(eventually([&] { return !session->write(block); }));
  EXPECT_LT(session->room(), block.size());
}

TEST_F(ExecTest, WhatCannotRunSaysWhy) {
  ExecOptions options = exec("");
  for (const auto& [program, code, why] :
       {std::tuple{"no-such-program", 127, "no such program in the container: no-such-program"},
        std::tuple{"/workspace", 126, "/workspace in the container is no program"}}) {
    for (const bool terminal : {false, true}) {
      Sink sink;
      options.command = {program};
      options.terminal = terminal;
      const auto session = start_exec(options, sink.callbacks());
      const ExecEnd end = sink.whole_end();
      ASSERT_TRUE(end.outcome.ok()) << end.outcome.error().message;
      EXPECT_EQ(*end.outcome, code);
      EXPECT_TRUE(end.not_started.starts_with(why)) << end.not_started;
      EXPECT_NE(end.engine_text, "");
      EXPECT_EQ(sink.out() + sink.err(), "") << "the engine's words are not the command's";
    }
  }
  options.terminal = false;
  Sink other;
  options.container = "bm-none";
  const auto nowhere = start_exec(options, other.callbacks());
  const Result<int> missing = other.end();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
}

// A command that ends with 127 itself, or talks like the engine, is taken at its word.
TEST_F(ExecTest, WhatRanKeepsItsOwnWords) {
  Sink sink;
  const auto session = start_exec(exec("echo none >&2; exit 127"), sink.callbacks());
  const ExecEnd end = sink.whole_end();
  EXPECT_EQ(*end.outcome, 127);
  EXPECT_EQ(end.not_started, "");
  EXPECT_EQ(sink.err(), "none\n");
  Sink posing;
  const auto other = start_exec(exec("echo 'Error: crun: x' >&2; exit 3"), posing.callbacks());
  EXPECT_EQ(posing.whole_end().not_started, "");
  EXPECT_EQ(posing.err(), "Error: crun: x\n");
}

TEST_F(ExecTest, DestroyingASessionEndsIt) {
  Sink sink;
  {
    const auto session = start_exec(exec("echo up; cat"), sink.callbacks());
    ASSERT_TRUE(sink.wait_for("up"));
  }
  EXPECT_FALSE(sink.end().ok());
}

TEST_F(ExecTest, FilesGoInAndComeOut) {
  const TempDir temp;
  ASSERT_TRUE(make_dirs(temp.file("up/sub")).ok());
  std::string big;
  for (int i = 0; i < 700'000; ++i) {
    big += static_cast<char>(i * 31 >> 3);
  }
  ASSERT_TRUE(write_file(temp.file("up/sub/big"), big).ok());
  const Result<int> sent = upload(tar_of(temp.file("up")), "/workspace");
  ASSERT_TRUE(sent.ok()) << sent.error().message;
  Sink sink;
  const auto session =
      start_archive(archive(ArchiveWay::Download, "/workspace/sub"), sink.callbacks());
  const Result<int> got = sink.end();
  ASSERT_TRUE(got.ok()) << got.error().message;
  RunOptions options;
  options.input = sink.out();
  ASSERT_TRUE(make_dirs(temp.file("down")).ok());
  ASSERT_TRUE(run_ok({"tar", "-C", temp.file("down"), "-xf", "-"}, options).ok());
  EXPECT_TRUE(*read_file(temp.file("down/sub/big")) == big);
}

// An archive call takes a thread of the engine into the job's mount namespace, and one that stayed
// there would keep the job's scratch space mounted: no thread of the service, which lives on.
TEST_F(ExecTest, TheServiceStaysOutOfTheMountNamespaceOfAJob) {
  const std::string inside = mount_namespace(std::to_string(node_.container_pid(*dir_)));
  ASSERT_NE(inside, "");
  ASSERT_NE(inside, mount_namespace("self"));
  Sink sink;
  std::unique_ptr<ExecSession> session =
      start_archive(archive(ArchiveWay::Upload, "/workspace"), sink.callbacks());
  const TempDir temp;
  ASSERT_TRUE(write_file(temp.file("big"), std::string(100'000, 'x')).ok());
  ASSERT_TRUE(session->write(std::string_view(tar_of(temp.path())).substr(0, 64 * 1024)));
  std::vector<int> engines;
  ASSERT_TRUE(eventually([&] { return !(engines = engines_in(inside)).empty(); }));
  const Result<int> service = service_pid(node_.runtime().facts());
  ASSERT_TRUE(service.ok());
  EXPECT_EQ(std::count(engines.begin(), engines.end(), *service), 0);
  session->close_input();
  (void)sink.end().ok();  // the tar was cut off
  session.reset();
  EXPECT_EQ(engines_in(inside), std::vector<int>{});
  EXPECT_EQ(*service_pid(node_.runtime().facts()), *service);
}

TEST_F(ExecTest, NoLinkLeadsAnUploadOutOfTheJob) {
  const TempDir temp;
  const TempDir outside;
  ASSERT_TRUE(make_dirs(temp.file("up")).ok());
  ASSERT_TRUE(write_file(temp.file("up/planted"), "x").ok());
  // A link of the job to a folder of the machine, and one in the tar itself.
  Sink sink;
  const auto session = start_exec(
      exec("ln -s " + outside.path() + " /scratch/out; ln -s /etc /scratch/etc"), sink.callbacks());
  ASSERT_EQ(*sink.end(), 0);
  (void)upload(tar_of(temp.file("up")), "/scratch/out").ok();  // to the job's own /tmp at most
  EXPECT_FALSE(upload(tar_of(temp.file("up")), "/scratch/etc").ok());
  const Result<std::string> climbing =
      run_ok({"tar", "-C", temp.file("up"), "--transform=s,planted,../../../../planted,", "-P",
              "-cf", "-", "planted"});
  ASSERT_TRUE(climbing.ok());
  (void)upload(*climbing, "/scratch").ok();
  EXPECT_FALSE(read_file(outside.file("planted")).ok());
  EXPECT_FALSE(read_file("/etc/planted").ok());
  EXPECT_FALSE(read_file("/planted").ok());
  EXPECT_FALSE(read_file(node_.state_dir() + "/planted").ok());
  // The way that is allowed works.
  EXPECT_TRUE(upload(tar_of(temp.file("up")), "/scratch").ok());
  EXPECT_EQ(*read_file(dir_->file("scratch/data/planted")), "x");
}

TEST_F(ExecTest, AnUploadReplacesNoFolderByAFile) {
  const TempDir temp;
  Sink sink;
  const auto session =
      start_exec(exec("mkdir /workspace/x; echo kept > /workspace/x/in"), sink.callbacks());
  ASSERT_EQ(*sink.end(), 0);
  ASSERT_TRUE(make_dirs(temp.file("up")).ok());
  ASSERT_TRUE(write_file(temp.file("up/x"), "file").ok());
  const Result<int> refused = upload(tar_of(temp.file("up")), "/workspace");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("end TO with /"), std::string::npos)
      << refused.error().message;
  const Result<int> read_only = upload(tar_of(temp.file("up")), "/usr");
  ASSERT_FALSE(read_only.ok());
  EXPECT_NE(read_only.error().message.find("read-only"), std::string::npos);
  const Result<int> inside = upload(tar_of(temp.file("up")), "/workspace/x");
  EXPECT_TRUE(inside.ok());
  Sink after;
  const auto look = start_exec(exec("cat /workspace/x/in /workspace/x/x"), after.callbacks());
  ASSERT_EQ(*after.end(), 0);
  EXPECT_EQ(after.out(), "kept\nfile");
}

TEST_F(ExecTest, AMissingPathIsNotFound) {
  Sink sink;
  const auto session =
      start_archive(archive(ArchiveWay::Download, "/workspace/none"), sink.callbacks());
  const Result<int> end = sink.end();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, ErrorCode::NotFound);
  EXPECT_NE(end.error().message.find("there is no /workspace/none in the job"), std::string::npos);
  Sink relative;
  const auto other = start_archive(archive(ArchiveWay::Download, "etc"), relative.callbacks());
  EXPECT_EQ(relative.end().error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace bmgpu::agent
