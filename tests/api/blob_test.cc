#include "api/server_fixture.h"
#include "api/temporary_folder.h"

namespace bmgpu::api {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class BlobTest : public ServerFixture {
 protected:
  void add_routes(Server& server) override {
    Server::Blobs blobs;
    blobs.directory = folder_.file("blobs");
    blobs.may_put = [](const Identity& caller) { return caller.token == 1; };
    blobs.may_get = [](const Identity&) { return true; };
    server.blobs(std::move(blobs));
  }
  static std::string name_of(std::string_view content) { return wire::hex(wire::sha256(content)); }
  static std::string put(std::string_view name, std::string_view body, std::string_view lines = {},
                         std::string_view token = "good") {
    std::string request = "PUT /blobs/" + std::string(name) + " HTTP/1.1\r\nHost: t\r\n";
    request += "Authorization: Bearer " + std::string(token) + "\r\n" + std::string(lines);
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    return request + std::string(body);
  }
  static std::string get(std::string_view name, std::string_view token = "good") {
    return "GET /blobs/" + std::string(name) + " HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer " +
           std::string(token) + "\r\n\r\n";
  }
  bool kept(std::string_view name) {
    return fs::exists(folder_.file("blobs/" + std::string(name)));
  }
  bool nothing_half_written() {
    return eventually([this] { return fs::is_empty(folder_.file("blobs/tmp")); });
  }

  TemporaryFolder folder_;
};

TEST_F(BlobTest, KeepsAndGivesFiles) {
  serve();
  RawClient client(port_);
  for (const std::string& content :
       {std::string("small"), std::string(), std::string(900'000, 'b')}) {
    const RawResponse stored = client.call(put(name_of(content), content));
    EXPECT_EQ(stored.status, 200);
    EXPECT_EQ(stored.body, "{}");
    EXPECT_EQ(TemporaryFolder::read(folder_.file("blobs/" + name_of(content))), content);
    EXPECT_EQ(client.call(get(name_of(content), "other")).body, content);
    EXPECT_EQ(client.call(put(name_of(content), content)).status, 200);  // again: the same
  }
  EXPECT_TRUE(nothing_half_written());
  EXPECT_EQ(server_->stats().connections_accepted_total, 1U);
}

TEST_F(BlobTest, KeepsNothingOfAnotherHash) {
  serve();
  RawClient client(port_);
  const RawResponse refused = client.call(put(name_of("right"), "wrong"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(name_of("wrong")), std::string::npos) << refused.body;
  EXPECT_FALSE(kept(name_of("right")));
  EXPECT_TRUE(nothing_half_written());
  EXPECT_EQ(client.call(put(name_of("right"), "right")).status, 200);
}

TEST_F(BlobTest, RefusesNamesThatAreNoHash) {
  serve();
  RawClient client(port_);
  for (const std::string& name :
       {std::string(), std::string("tmp"), std::string("../secret"), std::string("..%2fsecret"),
        std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'), std::string(64, 'g'),
        std::string(62, 'a') + "/.", "./" + std::string(62, 'a'), std::string(64, '.')}) {
    EXPECT_EQ(client.call(put(name, "x")).status, 400) << name;
    EXPECT_EQ(client.call(get(name)).status, 400) << name;
  }
  EXPECT_EQ(client.call(get(name_of("absent"))).status, 404);
}

TEST_F(BlobTest, AsksWhoMay) {
  serve();
  RawClient client(port_);
  EXPECT_EQ(client.call(put(name_of("x"), "x", "", "wrong")).status, 401);
  EXPECT_EQ(client.call(put(name_of("x"), "x", "", "other")).status, 403);
  EXPECT_FALSE(kept(name_of("x")));
  EXPECT_EQ(client.call(get(name_of("x"), "wrong")).status, 401);
  EXPECT_EQ(client.call(post("blobs/" + name_of("x"), "x", "application/proto")).status, 405);
}

TEST_F(BlobTest, RefusesLargeFiles) {
  ServerLimits limits;
  limits.blob_bytes_max = 1000;
  limits.body_bytes_max = 10;  // is not the one for blobs
  serve(limits);
  RawClient client(port_);
  const std::string fits(1000, 'f');
  EXPECT_EQ(client.call(put(name_of(fits), fits)).status, 200);
  const std::string large(1001, 'l');
  EXPECT_EQ(client.call(put(name_of(large), large)).status, 413);
  RawClient chunked(port_);
  const std::string head = "PUT /blobs/" + name_of(large) +
                           " HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer good\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n3e9\r\n";
  EXPECT_EQ(chunked.call(head + large + "\r\n0\r\n\r\n").status, 413);
  EXPECT_FALSE(kept(name_of(large)));
  EXPECT_TRUE(nothing_half_written());
}

TEST_F(BlobTest, KeepsNothingOfUploadsThatBreakOff) {
  serve();
  const std::string content(500'000, 'c');
  {
    RawClient client(port_);
    const std::string request = put(name_of(content), content);
    client.send(std::string_view(request).substr(0, request.size() / 2));
    EXPECT_TRUE(eventually([this] { return !fs::is_empty(folder_.file("blobs/tmp")); }));
  }
  EXPECT_TRUE(nothing_half_written());
  EXPECT_FALSE(kept(name_of(content)));
}

TEST_F(BlobTest, ClosesUploadsThatAreTooSlow) {
  ServerLimits limits;
  limits.request_timeout = milliseconds(100);
  limits.bytes_per_second_min = 1'000'000;
  serve(limits);
  RawClient client(port_);
  const std::string request = put(name_of("0123456789"), "0123456789");
  client.send(std::string_view(request).substr(0, request.size() - 1));
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(server_->stats().connections_timed_out_total, 1U);
  EXPECT_TRUE(nothing_half_written());
}

TEST_F(BlobTest, RemovesWhatAnEarlierRunLeft) {
  fs::create_directories(folder_.file("blobs/tmp"));
  std::ofstream(folder_.file("blobs/tmp/left")) << "half";
  std::ofstream(folder_.file("blobs/" + name_of("whole"))) << "whole";
  serve();
  EXPECT_FALSE(fs::exists(folder_.file("blobs/tmp/left")));
  EXPECT_EQ(RawClient(port_).call(get(name_of("whole"))).body, "whole");
}

TEST_F(BlobTest, FollowsNoLinks) {
  serve();
  std::ofstream(folder_.file("secret")) << "secret";
  fs::create_symlink(folder_.file("secret"), folder_.file("blobs/" + name_of("link")));
  RawClient client(port_);
  EXPECT_EQ(client.call(get(name_of("link"))).status, 503);
  EXPECT_EQ(client.call(put(name_of("link"), "link")).status, 200);
  EXPECT_EQ(TemporaryFolder::read(folder_.file("secret")), "secret");
}

TEST_F(BlobTest, SendsContinueOnlyToThoseWhoMay) {
  serve();
  RawClient client(port_);
  const std::string expecting = put(name_of("abc"), "abc", "Expect: 100-continue\r\n");
  client.send(std::string_view(expecting).substr(0, expecting.size() - 3));
  EXPECT_EQ(client.read_response(true).status, 100);
  client.send("abc");
  EXPECT_EQ(client.read_response().status, 200);
  const std::string denied = put(name_of("abc"), "abc", "Expect: 100-continue\r\n", "other");
  client.send(std::string_view(denied).substr(0, denied.size() - 3));
  EXPECT_EQ(client.read_response().status, 403);
}

}  // namespace
}  // namespace bmgpu::api
