// exec, cp and working directories through a real market and node.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "agent/agent_process.h"
#include "agent/market_process.h"
#include "agent/runtime/node_fixture.h"
#include "bmgpu/v1/market.pb.h"
#include "wire/hash.h"

namespace bmgpu::agent {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;

// One WebSocket of `bmcli exec`.
class ExecClient {
 public:
  ExecClient(const MarketProcess& market, const v1::ExecStart& start) {
    wire::WebSocketClient::Callbacks callbacks;
    callbacks.on_message = [this](const std::string& bytes) {
      v1::ExecServerFrame frame;
      EXPECT_TRUE(frame.ParseFromString(bytes));
      const std::lock_guard lock(mutex_);
      out_ += frame.stdout();
      err_ += frame.stderr();
      if (frame.kind_case() == v1::ExecServerFrame::kExitCode) {
        outcome_ = frame.exit_code();
      } else if (frame.kind_case() == v1::ExecServerFrame::kError) {
        outcome_ = Error{ErrorCode::Internal, frame.error()};
      }
      changed_.notify_all();
    };
    callbacks.on_closed = [this](const Error& why) {
      const std::lock_guard lock(mutex_);
      if (!outcome_) {
        outcome_ = why;
      }
      changed_.notify_all();
    };
    socket_ = std::move(*wire::WebSocketClient::connect(
        market.endpoint(), "bmgpu.v1.Market/Exec", std::move(callbacks), std::chrono::seconds(10)));
    v1::ExecClientFrame frame;
    *frame.mutable_start() = start;
    socket_->send(frame.SerializeAsString());
  }

  void input(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 64 * 1024) {
      v1::ExecClientFrame frame;
      frame.set_stdin(bytes.substr(at, 64 * 1024));
      socket_->send(frame.SerializeAsString());
    }
  }
  void close_input() {
    v1::ExecClientFrame frame;
    frame.set_stdin_closed(true);
    socket_->send(frame.SerializeAsString());
  }
  Result<int> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [this] { return outcome_.has_value(); }));
    return outcome_ ? *outcome_ : Error{ErrorCode::DeadlineExceeded, "no end"};
  }
  const std::string& out() const { return out_; }  // after wait()
  const std::string& err() const { return err_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_, err_;
  std::optional<Result<int>> outcome_;
  std::unique_ptr<wire::WebSocketClient> socket_;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * 131 + i / 977);
  }
  return bytes;
}

class NodeStreamsTest : public testing::Test {
 protected:
  std::string running(const v1::JobSpec& job) {
    const v1::Order order = market_.place(job, 1, kHourMs);
    EXPECT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_RUNNING));
    return order.id();
  }
  static v1::ExecStart command(const std::string& id, const std::string& script) {
    v1::ExecStart start;
    start.set_id(id);
    for (const std::string& word : {std::string("sh"), std::string("-c"), script}) {
      start.add_command(word);
    }
    return start;
  }
  static v1::ExecStart archive(const std::string& id, v1::ArchiveDirection direction,
                               const std::string& path) {
    v1::ExecStart start;
    start.set_id(id);
    start.set_archive(direction);
    start.set_archive_path(path);
    return start;
  }

  MarketProcess market_;
  AgentProcess node_{market_, "gpu7"};
};

TEST_F(NodeStreamsTest, ExecRunsACommandInTheJob) {
  const std::string id = running(AgentProcess::shell("echo here > /tmp/mark; sleep 1000"));
  ExecClient exec(market_, command(id, "cat /tmp/mark; echo oops >&2; exit 4"));
  const Result<int> code = exec.wait();
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 4);
  EXPECT_EQ(exec.out(), "here\n");
  EXPECT_EQ(exec.err(), "oops\n");
  // The engine's monitor of the command does not stay (its own default: five minutes).
  EXPECT_TRUE(eventually([this] { return node_.processes("conmon") == 1; }));
}

TEST_F(NodeStreamsTest, ManyBytesGoBothWaysUnchanged) {
  const std::string id = running(AgentProcess::shell("sleep 1000"));
  ExecClient exec(market_, command(id, "cat"));
  const std::string bytes = pattern(8 * 1024 * 1024);
  exec.input(bytes);
  exec.close_input();
  const Result<int> code = exec.wait();
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(exec.out().size(), bytes.size());
  EXPECT_TRUE(exec.out() == bytes);
}

TEST_F(NodeStreamsTest, WhatCopyTakesOutItCanPutIn) {
  const std::string id = running(
      AgentProcess::shell("mkdir -p /tmp/a /tmp/b; echo content > /tmp/a/file; sleep 1000"));
  EXPECT_TRUE(eventually([&] {
    ExecClient look(market_, command(id, "cat /tmp/a/file && ls -d /tmp/b"));
    return look.wait().ok() && look.out() == "content\n/tmp/b\n";
  }));
  ExecClient down(market_, archive(id, v1::ARCHIVE_DIRECTION_DOWNLOAD, "/tmp/a/file"));
  ASSERT_TRUE(down.wait().ok());
  ASSERT_GT(down.out().size(), 512u);
  ExecClient up(market_, archive(id, v1::ARCHIVE_DIRECTION_UPLOAD, "/tmp/b"));
  up.input(down.out());
  up.close_input();
  const Result<int> code = up.wait();
  ASSERT_TRUE(code.ok()) << code.error().message;
  ExecClient look(market_, command(id, "cat /tmp/b/file"));
  ASSERT_TRUE(look.wait().ok());
  EXPECT_EQ(look.out(), "content\n");
}

TEST_F(NodeStreamsTest, AnEndedJobTakesNoCommands) {
  const v1::Order order = market_.place(AgentProcess::shell("true"), 1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  ExecClient exec(market_, command(order.id(), "true"));
  EXPECT_FALSE(exec.wait().ok());
}

TEST_F(NodeStreamsTest, WorkingDirectoriesAreFetchedLaidOutAndKept) {
  const TempDir local;
  const std::string content = pattern(300'000);
  ASSERT_TRUE(write_file(local.file("data"), content).ok());
  const wire::Sha256Digest digest = wire::sha256(content);
  const std::unique_ptr<wire::Client> client = std::move(*wire::Client::create(market_.endpoint()));
  const Result<void> put =
      client->put_file("/blobs/" + wire::hex(digest), local.file("data"), [](std::size_t) {});
  ASSERT_TRUE(put.ok()) << put.error().message;
  v1::JobSpec job = AgentProcess::shell("pwd; wc -c < sub/data; ls -l sub | grep -c rwxr-x---");
  job.set_has_workdir(true);
  v1::WorkFile& file = *job.add_workdir();
  file.set_path("sub/data");
  file.set_sha256(std::string(wire::as_bytes(digest)));
  file.set_size(static_cast<std::int64_t>(content.size()));
  file.set_mode(0750);
  const v1::Order order = market_.place(job, 1, kHourMs);
  ASSERT_TRUE(market_.wait_for(order.id(), v1::ORDER_STATE_ENDED));
  EXPECT_EQ(market_.log(order.id()), (std::vector<std::string>{"/workspace", "300000", "1"}));
  const Result<std::string> kept = read_file(node_.state_dir() + "/blobs/" + wire::hex(digest));
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(*kept == content);
}

}  // namespace
}  // namespace bmgpu::agent
