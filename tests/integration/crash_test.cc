// kill -9 of bmd at 200 random points under load: no acknowledged order is lost, none is doubled,
// and what is replayed is what was.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.h"
#include "integration/market_fixture.h"

namespace bmgpu::integration {
namespace {

constexpr int kKills = 200;
constexpr int kClients = 4;
constexpr std::uint64_t kOrdersPerLifeMax = 40;

class CrashTest : public MarketTest {
 protected:
  // Nodes are not lost meanwhile, so that every order lives to the end.
  CrashTest() : MarketTest("liveness: {lost_ms: 600000}") {}

  std::string verify() {
    int code = 0;
    const std::string verified = bmd.run("--verify", code);
    EXPECT_EQ(code, 0) << bmd.messages();
    return verified;
  }
};

// The number behind "name": in a JSON text.
std::uint64_t number_in(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  EXPECT_NE(at, std::string::npos) << json;
  return std::stoull(json.substr(at + name.size() + 3));
}

// One closed-loop client over the lives of bmd. An order that was not acknowledged is sent again
// with its key in the next life.
class Submitter {
 public:
  Submitter(std::string name, v1::PlaceOrderRequest request)
      : name_(std::move(name)), request_(std::move(request)) {}

  // Until bmd is gone.
  void run(const BmdProcess& bmd, const std::string& token, std::atomic<std::uint64_t>& count) {
    const std::unique_ptr<wire::Client> client = bmd.client(token);
    while (submit(*client)) {
      ++count;
    }
  }

  bool submit(wire::Client& client) {
    v1::Order placed;
    const std::string key = name_ + std::to_string(next_);
    const Result<void> done = client.call("bmgpu.v1.Market/PlaceOrder", request_, placed, key);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::Unavailable) << done.error().message;
      return false;
    }
    EXPECT_TRUE(orders_.insert(placed.id()).second) << placed.id() << " was given twice";
    ++next_;
    return true;
  }
  const std::set<std::string>& orders() const { return orders_; }

 private:
  const std::string name_;
  const v1::PlaceOrderRequest request_;
  std::uint64_t next_ = 1;
  std::set<std::string> orders_;
};

TEST_F(CrashTest, KilledAtTwoHundredPointsNothingIsLostOrDoubled) {
  const std::string token = create_token(v1::ROLE_TENANT, "alice").secret();
  FakeAgent agent(bmd, {});
  ASSERT_TRUE(agent.connect());
  wait_free_gpus(8);
  Prng random(20260801);
  std::vector<std::unique_ptr<Submitter>> submitters;
  for (int i = 0; i < kClients; ++i) {
    submitters.push_back(
        std::make_unique<Submitter>("client-" + std::to_string(i) + "-", order(1)));
  }
  for (int life = 0; life < kKills; ++life) {
    if (life > 0) {
      ASSERT_TRUE(bmd.start()) << "life " << life << ": " << bmd.messages();
      if (life % 10 == 0) {
        ASSERT_TRUE(agent.connect());
      }
    }
    const std::uint64_t kill_after = random.below(kOrdersPerLifeMax);
    const auto nudge = std::chrono::microseconds(random.below(2000));
    std::atomic<std::uint64_t> acknowledged{0};
    std::vector<std::thread> threads;
    for (const auto& submitter : submitters) {
      threads.emplace_back([&] { submitter->run(bmd, token, acknowledged); });
    }
    while (acknowledged < kill_after) {
      std::this_thread::yield();
    }
    const auto until = std::chrono::steady_clock::now() + nudge;
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    bmd.kill();
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (life % 20 == 0) {
      const std::string verified = verify();
      EXPECT_EQ(verified, verify());
    }
  }
  ASSERT_TRUE(bmd.start());
  const std::unique_ptr<wire::Client> client = bmd.client(token);
  std::set<std::string> given;
  for (const auto& submitter : submitters) {
    EXPECT_TRUE(submitter->submit(*client));  // the one that was in flight, or one more
    for (const std::string& id : submitter->orders()) {
      EXPECT_TRUE(given.insert(id).second) << id << " was given twice";
    }
  }
  for (const std::string& id : given) {
    v1::GetOrderRequest get;
    get.set_id(id);
    v1::Order seen;
    EXPECT_TRUE(client->call("bmgpu.v1.Market/GetOrder", get, seen)) << id << " was lost";
  }
  ASSERT_EQ(bmd.stop(), 0);
  const std::string replayed = verify();
  EXPECT_EQ(number_in(replayed, "leases") + number_in(replayed, "waiting_orders"), given.size());
  const std::size_t digest = replayed.find("\"digest\":\"");
  ASSERT_NE(digest, std::string::npos) << replayed;
  EXPECT_NE(bmd.messages().find("digest=" + replayed.substr(digest + 10, 16)), std::string::npos)
      << replayed << bmd.messages();
}

}  // namespace
}  // namespace bmgpu::integration
