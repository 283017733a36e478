#include "agent/market_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/runtime/node_fixture.h"
#include "wire/hash.h"
#include "wire/json.h"

namespace bmgpu::agent {

Child::Child(const std::vector<std::string>& argv, const std::string& log_file) {
  std::vector<char*> words;
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  const int failed = posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failed, 0) << argv[0];
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

Child::~Child() {
  if (pid_ > 0) {
    end(SIGKILL);
  }
}

void Child::signal(int number) const { ::kill(pid_, number); }

int Child::wait() {
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int Child::end(int number) {
  signal(number);
  return wait();
}

MarketProcess::MarketProcess() {
  write_config("127.0.0.1:0", "127.0.0.1:0");
  start();
  // A restart must be found where this one was.
  const wire::JsonObject endpoint =
      *wire::parse_json_object(*read_file(dir_.file("bmd/endpoint.json")));
  const std::string url = endpoint.at("url");
  write_config(url.substr(url.find("://") + 3), endpoint.at("heartbeat"));
}

MarketProcess::~MarketProcess() {
  if (testing::Test::HasFailure()) {
    const Result<std::string> messages = read_file(messages_);
    std::fprintf(stderr, "--- bmd ---\n%s", messages ? messages->c_str() : "");
  }
}

void MarketProcess::write_config(const std::string& listen, const std::string& heartbeat) const {
  const std::string text = "state_dir: " + dir_.file("bmd") + "\nlisten: " + listen +
                           "\nheartbeat_listen: " + heartbeat +
                           "\ndrivers_accepted: simulated\nprices: {default: \"1.00\"}\n" +
                           "images: {busybox: " + kImage + "}\n";
  ASSERT_TRUE(write_file(dir_.file("bmd.yaml"), text).ok());
}

void MarketProcess::start() {
  const std::string endpoint_file = dir_.file("bmd/endpoint.json");
  ::unlink(endpoint_file.c_str());
  bmd_ = Child({BMD_PROGRAM, "--config", dir_.file("bmd.yaml")}, messages_);
  ASSERT_TRUE(eventually([&] { return ::access(endpoint_file.c_str(), F_OK) == 0; }));
  token_ = *read_file(dir_.file("bmd/operator.token"));
  token_.erase(token_.find_last_not_of(" \n") + 1);
  client_ = std::move(*wire::Client::create(endpoint()));
}

void MarketProcess::kill() { EXPECT_EQ(bmd_.end(SIGKILL), 128 + SIGKILL); }

wire::Endpoint MarketProcess::endpoint() const {
  const wire::JsonObject endpoint =
      *wire::parse_json_object(*read_file(dir_.file("bmd/endpoint.json")));
  return {endpoint.at("url"), endpoint.at("ca_sha256"), token_};
}

void MarketProcess::call_erased(const std::string& method, const google::protobuf::Message& request,
                                google::protobuf::Message& response) {
  const Result<void> done =
      client_->call(method, request, response, "key-" + wire::hex(wire::random_bytes(16)));
  EXPECT_TRUE(done.ok()) << method << ": " << (done ? "" : done.error().message);
}

std::string MarketProcess::join_token(const std::string& node, std::int64_t ttl_ms) {
  v1::CreateTokenRequest request;
  request.set_role(v1::ROLE_NODE_JOIN);
  request.set_name("join-" + wire::hex(wire::random_bytes(4)));
  request.set_node(node);
  request.set_ttl_ms(ttl_ms);
  return call<v1::CreateTokenResponse>("CreateToken", request).secret();
}

v1::Order MarketProcess::place(const v1::JobSpec& job, std::uint32_t gpus,
                               std::int64_t duration_ms) {
  v1::PlaceOrderRequest request;
  request.mutable_resources()->set_gpus(gpus);
  request.set_duration_ms(duration_ms);
  *request.mutable_job() = job;
  return call<v1::Order>("PlaceOrder", request);
}

v1::Order MarketProcess::order(const std::string& id) {
  v1::GetOrderRequest request;
  request.set_id(id);
  return call<v1::Order>("GetOrder", request);
}

bool MarketProcess::wait_for(const std::string& id, v1::OrderState state) {
  v1::Order last;
  const bool came = eventually([&] {
    last = order(id);
    return last.state() == state || last.state() == v1::ORDER_STATE_ENDED;
  });
  EXPECT_EQ(last.state(), state) << last.DebugString();
  return came && last.state() == state;
}

std::vector<std::string> MarketProcess::log(const std::string& id) {
  v1::StreamLogsRequest request;
  request.set_id(id);
  request.set_follow(true);
  std::vector<std::string> lines;
  bool complete = false;
  const Result<void> ended =
      client_->stream("bmgpu.v1.Market/StreamLogs", request, [&](std::string_view bytes) {
        v1::LogChunk chunk;
        EXPECT_TRUE(chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
        for (const v1::LogLine& line : chunk.lines()) {
          lines.push_back(line.text());
        }
        complete = complete || chunk.complete();
        return true;
      });
  EXPECT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_TRUE(complete);
  return lines;
}

v1::Node MarketProcess::node() {
  const v1::ListNodesResponse nodes =
      call<v1::ListNodesResponse>("ListNodes", v1::ListNodesRequest());
  EXPECT_EQ(nodes.nodes_size(), 1);
  return nodes.nodes_size() == 1 ? nodes.nodes(0) : v1::Node();
}

}  // namespace bmgpu::agent
