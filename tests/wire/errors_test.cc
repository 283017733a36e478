#include "wire/errors.h"

#include <gtest/gtest.h>

#include <set>

namespace bmgpu::wire {
namespace {

constexpr ErrorCode kAll[] = {
    ErrorCode::InvalidArgument,   ErrorCode::NotFound,        ErrorCode::AlreadyExists,
    ErrorCode::Refused,           ErrorCode::Unauthenticated, ErrorCode::PermissionDenied,
    ErrorCode::ResourceExhausted, ErrorCode::Unavailable,     ErrorCode::DeadlineExceeded,
    ErrorCode::DataLoss,          ErrorCode::Internal};

TEST(ErrorsTest, EveryCodeHasItsOwnConnectCodeAndComesBack) {
  std::set<std::string_view> seen;
  for (const ErrorCode code : kAll) {
    EXPECT_TRUE(seen.insert(connect_code(code)).second);
    EXPECT_EQ(error_code_of_connect(connect_code(code)), code);
    EXPECT_GE(http_status(code), 400);
  }
}

TEST(ErrorsTest, JsonRoundTripsAnyMessage) {
  for (const char* message :
       {"", "plain", "quotes \" and \\", "line\nbreak\x01\x7f", "träge 日本"}) {
    const Error error{ErrorCode::Refused, message};
    EXPECT_EQ(parse_error_json(error_json(error), 400), error) << error_json(error);
  }
}

TEST(ErrorsTest, JsonStaysValidForBytesThatAreNotText) {
  const std::string json = error_json(Error{ErrorCode::Internal, "bad \xff\xc0\x80 end"});
  EXPECT_EQ(parse_error_json(json, 500).message, "bad \ufffd\ufffd\ufffd end");
}

TEST(ErrorsTest, UnderstandsForeignAnswers) {
  EXPECT_EQ(error_code_of_connect("unimplemented"), ErrorCode::NotFound);
  EXPECT_EQ(error_code_of_connect("canceled"), ErrorCode::Unavailable);
  EXPECT_EQ(error_code_of_connect("new_code"), ErrorCode::Internal);
  EXPECT_EQ(parse_error_json("<html>502</html>", 502).code, ErrorCode::Unavailable);
  EXPECT_EQ(parse_error_json("[]", 404).code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace bmgpu::wire
