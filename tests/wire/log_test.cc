#include "wire/log.h"

#include <gtest/gtest.h>

#include <functional>

namespace bmgpu::wire {
namespace {

std::string logged(const LogOptions& options, const std::function<void(Log&)>& body) {
  testing::internal::CaptureStderr();
  {
    Log log(options);
    body(log);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, TextLineHoldsMessageAndFields) {
  const std::string out = logged({}, [](Log& log) {
    log.info("lease started", {{"lease", "lease-3"}, {"gpus", 2}, {"why", "two words"}});
  });
  EXPECT_TRUE(out.ends_with("Z info lease started lease=lease-3 gpus=2 why=\"two words\"\n"))
      << out;
}

TEST(LogTest, JsonLineIsOneObjectWhateverTheValue) {
  const std::string out = logged({LogLevel::Info, LogFormat::Json, "bmd"}, [](Log& log) {
    log.error("bad \"input\"", {{"text", "a\nb\xff\x01"}, {"held", true}});
  });
  const std::string tail =
      R"("level":"error","message":"bad \"input\"","process":"bmd","text":"a\nb\u00ff\u0001","held":true})";
  EXPECT_TRUE(out.ends_with(tail + "\n")) << out;
  EXPECT_TRUE(out.starts_with("{\"time\":\"2")) << out;
}

TEST(LogTest, LevelsBelowTheConfiguredOneAreSilent) {
  const std::string out = logged({LogLevel::Warning, LogFormat::Text, ""}, [](Log& log) {
    log.info("hidden");
    log.warning("shown");
  });
  EXPECT_EQ(out.find("hidden"), std::string::npos);
  EXPECT_NE(out.find("shown"), std::string::npos);
}

}  // namespace
}  // namespace bmgpu::wire
