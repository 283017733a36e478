#include "wire/connect.h"

#include <gtest/gtest.h>

namespace bmgpu::wire {
namespace {

TEST(ConnectTest, KnowsTheFourContentTypes) {
  EXPECT_EQ(unary_encoding("application/json"), Encoding::Json);
  EXPECT_EQ(unary_encoding("Application/JSON; charset=utf-8"), Encoding::Json);
  EXPECT_EQ(unary_encoding("application/proto"), Encoding::Proto);
  EXPECT_EQ(stream_encoding("application/connect+json"), Encoding::Json);
  EXPECT_EQ(stream_encoding("application/connect+proto"), Encoding::Proto);
  for (const char* type : {"", "text/plain", "application/jsonx", "application/grpc", ";"}) {
    EXPECT_FALSE(unary_encoding(type).has_value()) << type;
    EXPECT_FALSE(stream_encoding(type).has_value()) << type;
  }
}

TEST(ConnectTest, ReadsEnvelopesThatArriveByteByByte) {
  std::string bytes;
  append_envelope(bytes, 0, "hello");
  append_envelope(bytes, kFlagEndStream, "");
  EnvelopeReader reader(100);
  std::vector<EnvelopeReader::Envelope> found;
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    auto next = reader.next();
    ASSERT_TRUE(next.ok());
    if (next->has_value()) {
      found.push_back(**next);
    }
  }
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].message, "hello");
  EXPECT_EQ(found[1].flags, kFlagEndStream);
  EXPECT_TRUE(reader.empty());
}

TEST(ConnectTest, RefusesAnEnvelopeOverTheLimitBeforeItArrives) {
  EnvelopeReader reader(1000);
  reader.add(std::string("\0\xff\xff\xff\xff", 5));
  EXPECT_EQ(reader.next().error().code, ErrorCode::ResourceExhausted);
}

TEST(ConnectTest, StreamRequestIsExactlyOneEnvelope) {
  std::string body;
  append_envelope(body, 0, "ask");
  EXPECT_EQ(*parse_stream_request(body), "ask");
  std::string compressed = body;
  compressed[0] = kFlagCompressed;
  for (const std::string& wrong : {std::string(), std::string("ask"), body + "x", body + body,
                                   body.substr(0, body.size() - 1), compressed}) {
    EXPECT_FALSE(parse_stream_request(wrong).ok());
  }
}

TEST(ConnectTest, EndStreamCarriesTheOutcome) {
  const auto outcome_in = [](const std::string& bytes) {
    return parse_end_stream(std::string_view(bytes).substr(kEnvelopeBytes));
  };
  EXPECT_TRUE(outcome_in(end_stream({})).ok());
  const Error error{ErrorCode::NotFound, "no \"such\" order"};
  EXPECT_EQ(outcome_in(end_stream(error)).error(), error);
  EXPECT_EQ(parse_end_stream("rubbish").error().code, ErrorCode::DataLoss);
}

}  // namespace
}  // namespace bmgpu::wire
