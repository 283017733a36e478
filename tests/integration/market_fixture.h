// What most integration tests start from: a running bmd, its operator, tenants.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bmgpu/v1/market.pb.h"
#include "integration/bmd_process.h"
#include "integration/fake_agent.h"

namespace bmgpu::integration {

class MarketTest : public testing::Test {
 protected:
  explicit MarketTest(std::string extra = "") : bmd(BMD_PROGRAM, std::move(extra)) {}
  void SetUp() override { ASSERT_TRUE(bmd.start()) << bmd.messages(); }

  v1::CreateTokenResponse create_token(v1::Role role, const std::string& name) {
    v1::CreateTokenRequest request;
    request.set_role(role);
    request.set_name(name);
    v1::CreateTokenResponse response;
    const Result<void> made =
        bmd.operator_client()->call("bmgpu.v1.Market/CreateToken", request, response, name);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return response;
  }
  std::unique_ptr<wire::Client> tenant(const std::string& name) {
    return bmd.client(create_token(v1::ROLE_TENANT, name).secret());
  }

  static v1::PlaceOrderRequest order(std::uint32_t gpus, const std::string& gpu = "A100") {
    v1::PlaceOrderRequest request;
    request.mutable_resources()->set_gpus(gpus);
    request.mutable_resources()->set_gpu(gpu);
    request.set_duration_ms(3'600'000);
    request.mutable_job()->set_image("pytorch:2.0");
    request.mutable_job()->add_command("true");
    return request;
  }

  // Asks until `holds` for the order, by its watch stream; the last view.
  static v1::Order watch_until(wire::Client& client, const std::string& id,
                               const std::function<bool(const v1::Order&)>& holds) {
    v1::GetOrderRequest request;
    request.set_id(id);
    v1::Order last;
    const Result<void> watched =
        client.stream("bmgpu.v1.Market/WatchOrder", request, [&](std::string_view bytes) {
          EXPECT_TRUE(last.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
          return !holds(last);
        });
    EXPECT_TRUE(watched.ok()) << watched.error().message;
    return last;
  }

  // Waits until offers of exactly as many GPUs are there.
  void wait_free_gpus(std::uint32_t gpus) {
    const std::unique_ptr<wire::Client> client = bmd.operator_client();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::optional<std::uint32_t> free;
    while (free != gpus) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << free.value_or(0) << " GPUs are offered, not " << gpus;
      v1::ListOffersResponse offers;
      ASSERT_TRUE(client->call("bmgpu.v1.Market/ListOffers", v1::ListOffersRequest(), offers));
      free = 0;
      for (const v1::Offer& offer : offers.offers()) {
        *free += offer.gpus_free();
      }
    }
  }

  BmdProcess bmd;
};

}  // namespace bmgpu::integration
