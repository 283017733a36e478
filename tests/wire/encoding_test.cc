#include "wire/encoding.h"

#include <gtest/gtest.h>

#include "bmgpu/v1/market.pb.h"

namespace bmgpu::wire {
namespace {

v1::PlaceOrderRequest sample() {
  v1::PlaceOrderRequest request;
  request.mutable_resources()->set_gpus(2);
  request.mutable_resources()->set_gpu("A100");
  request.set_duration_ms(7'200'000);
  request.mutable_job()->set_image("pytorch:2.0");
  request.mutable_job()->add_command("python");
  request.mutable_job()->add_command("träin.py");
  return request;
}

void expect_refused(Encoding encoding, std::string_view bytes, std::string_view why) {
  v1::PlaceOrderRequest request;
  const Result<void> decoded = decode(encoding, bytes, request);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(decoded.error().message.find(why), std::string::npos) << decoded.error().message;
}

TEST(EncodingTest, BothEncodingsRoundTrip) {
  for (const Encoding encoding : {Encoding::Proto, Encoding::Json}) {
    v1::PlaceOrderRequest back;
    ASSERT_TRUE(decode(encoding, encode(encoding, sample()), back).ok());
    EXPECT_EQ(back.SerializeAsString(), sample().SerializeAsString());
  }
}

TEST(EncodingTest, JsonIsCamelCaseWithDefaults) {
  v1::GetInfoResponse info;
  info.set_now_unix_ms(5);
  const std::string json = encode(Encoding::Json, info);
  EXPECT_NE(json.find("\"nowUnixMs\":\"5\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"tokenName\":\"\""), std::string::npos) << json;
}

TEST(EncodingTest, JsonTakesNumbersForInt64) {
  v1::CreateQuoteRequest request;
  ASSERT_TRUE(
      decode(Encoding::Json, R"({"durationMs": 5, "resources": {"gpus": 1}})", request).ok());
  EXPECT_EQ(request.duration_ms(), 5);
}

TEST(EncodingTest, RefusesUnknownFields) {
  expect_refused(Encoding::Json, R"({"durationMs":"5","colour":"red"})", "colour");
  expect_refused(Encoding::Json, R"({"resources":{"gpu_count":2}})", "gpu_count");
  v1::PlaceOrderRequest request = sample();
  auto& job = *request.mutable_job();
  job.GetReflection()->MutableUnknownFields(&job)->AddVarint(900, 1);
  expect_refused(Encoding::Proto, request.SerializeAsString(), "bmgpu.v1.JobSpec field 900");
}

TEST(EncodingTest, AnswersOfNewerPeersMayHaveUnknownFields) {
  v1::PlaceOrderRequest request = sample();
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(900, 1);
  v1::PlaceOrderRequest back;
  ASSERT_TRUE(decode_answer(request.SerializeAsString(), back).ok());
  EXPECT_EQ(back.duration_ms(), 7'200'000);
  EXPECT_EQ(decode_answer("\xff", back).error().code, ErrorCode::DataLoss);
}

TEST(EncodingTest, RefusesInvalidUtf8) {
  expect_refused(Encoding::Json, "{\"quote\":\"\xff\"}", "UTF-8");
  expect_refused(Encoding::Json, "{\"quote\":\"\xed\xa0\x80\"}", "UTF-8");
  v1::PlaceOrderRequest request = sample();
  std::string bytes = request.SerializeAsString();
  const std::size_t at = bytes.find("A100");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = '\xff';
  expect_refused(Encoding::Proto, bytes, "UTF-8");
}

TEST(EncodingTest, RefusesTrailingAndMissingBytes) {
  const std::string proto = sample().SerializeAsString();
  expect_refused(Encoding::Proto, proto + "\x01", "stray bytes");
  expect_refused(Encoding::Proto, proto + std::string(3, '\0'), "stray bytes");
  expect_refused(Encoding::Proto, std::string_view(proto).substr(0, proto.size() - 1), "cut off");
  const std::string json = encode(Encoding::Json, sample());
  expect_refused(Encoding::Json, json + "x", "JSON");
  expect_refused(Encoding::Json, json + json, "JSON");
  expect_refused(Encoding::Json, std::string_view(json).substr(0, json.size() - 1), "JSON");
  expect_refused(Encoding::Json, "", "JSON");
}

TEST(EncodingTest, RefusesJsonOfAnotherShape) {
  for (const char* json : {"[]", "5", "null x", R"({"durationMs":"much"})", R"({"durationMs":1.5})",
                           R"({"resources":[]})", R"({"resources":{"gpus":-1}})",
                           R"({"resources":{"gpus":4294967296}})", R"({"restart":"SOMETIMES"})"}) {
    v1::PlaceOrderRequest request;
    EXPECT_FALSE(decode(Encoding::Json, json, request).ok()) << json;
  }
}

TEST(EncodingTest, DeepNestingIsRefusedNotACrash) {
  v1::PlaceOrderRequest request;
  EXPECT_FALSE(decode(Encoding::Json, std::string(1'000'000, '['), request).ok());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"job\":";
  }
  EXPECT_FALSE(decode(Encoding::Json, objects, request).ok());
  EXPECT_LT(decode(Encoding::Json, objects, request).error().message.size(), 600U);
}

}  // namespace
}  // namespace bmgpu::wire
