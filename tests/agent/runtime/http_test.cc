// The HTTP client against hand-written servers: what podman may send, and what a broken one may.
#include "agent/runtime/http.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "agent/runtime/podman.h"
#include "agent/runtime/temp_dir.h"

namespace bmgpu::agent {
namespace {

using Clock = HttpConnection::Clock;
using std::chrono::milliseconds;

// Accepts one connection, reads the head of a request, and sends `answer`.
class OneShotServer {
 public:
  explicit OneShotServer(std::string answer) : answer_(std::move(answer)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().c_str(), path().size());
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneShotServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string path() const { return dir_.file("s"); }

 private:
  void serve() {
    const Fd connection(::accept(listener_.get(), nullptr, nullptr));
    if (!connection.valid()) {
      return;
    }
    std::string request;
    char byte = 0;
    while (request.find("\r\n\r\n") == std::string::npos &&
           ::read(connection.get(), &byte, 1) == 1) {
      request += byte;
    }
    for (const char c : answer_) {  // byte by byte: no boundary may matter
      if (::send(connection.get(), &c, 1, MSG_NOSIGNAL) != 1) {
        return;
      }
    }
    if (answer_.empty()) {
      while (::read(connection.get(), &byte, 1) == 1) {
      }
    }
  }
  TempDir dir_;
  std::string answer_;
  Fd listener_;
  std::thread thread_;
};

Result<HttpResponse> ask(const std::string& answer, milliseconds wait = milliseconds(5000)) {
  OneShotServer server(answer);
  const Clock::time_point deadline = Clock::now() + wait;
  Result<HttpConnection> connection = HttpConnection::connect(server.path(), deadline);
  if (!connection.ok()) {
    return connection.error();
  }
  HttpRequest request;
  request.target = "/x";
  return connection->exchange(request, deadline);
}

TEST(HttpTest, ReadsBodiesByLengthAndByChunks) {
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")->body, "hello");
  EXPECT_EQ(
      ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")
          ->body,
      "hello");
  EXPECT_EQ(ask("HTTP/1.1 204 No Content\r\n\r\n")->status, 204);
}

TEST(HttpTest, ASilentServerIsADeadlineNotAHang) {
  Result<HttpResponse> response = ask("", milliseconds(50));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::DeadlineExceeded);
  OneShotServer server("");
  Result<std::string> version = Podman(server.path(), milliseconds(50)).version();
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().code, ErrorCode::DeadlineExceeded);
}

TEST(HttpTest, NobodyListeningIsUnavailable) {
  const TempDir dir;
  Result<HttpConnection> connection = HttpConnection::connect(dir.file("none"), Clock::now());
  ASSERT_FALSE(connection.ok());
  EXPECT_EQ(connection.error().code, ErrorCode::Unavailable);
}

TEST(HttpTest, BrokenAnswersAreErrors) {
  for (const char* answer :
       {"nonsense\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 200"}) {
    EXPECT_FALSE(ask(answer).ok()) << answer;
  }
}

TEST(HttpTest, ErrorsCarryTheEnginesWords) {
  OneShotServer server(
      "HTTP/1.1 404 Not Found\r\nContent-Length: 42\r\n\r\n"
      R"({"cause":"x","message":"no such container"})");
  Result<ContainerState> state = Podman(server.path()).inspect("a");
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().code, ErrorCode::NotFound);
}

TEST(HttpTest, EncodesTargets) {
  EXPECT_EQ(url_encode("localhost/a b:1?&"), "localhost%2Fa%20b%3A1%3F%26");
}

}  // namespace
}  // namespace bmgpu::agent
