#include "agent/doctor.h"

#include <gtest/gtest.h>

namespace bmgpu::agent {
namespace {

const DoctorCheck kGood{"root", true, "yes", ""};
const DoctorCheck kDoubtful{"clock", true, "not known", "run chrony"};
const DoctorCheck kBad{"guard", false, "does not run", "start the agent"};

TEST(DoctorTest, AWarningIsNoFailure) {
  EXPECT_TRUE(all_ok({kGood, kDoubtful}));
  EXPECT_FALSE(all_ok({kGood, kDoubtful, kBad}));
}

TEST(DoctorTest, EachVerdictIsToldApart) {
  EXPECT_EQ(doctor_text({kGood, kDoubtful, kBad}),
            "ok    root   yes\n"
            "warn  clock  not known\n"
            "             → run chrony\n"
            "FAIL  guard  does not run\n"
            "             → start the agent\n");
  EXPECT_EQ(doctor_json({kGood, kDoubtful}),
            R"({"ok":true,"checks":[{"name":"root","verdict":"ok","detail":"yes","advice":""},)"
            R"({"name":"clock","verdict":"warning","detail":"not known","advice":"run chrony"}]})"
            "\n");
  EXPECT_NE(doctor_json({kBad}).find(R"("verdict":"failed")"), std::string::npos);
}

}  // namespace
}  // namespace bmgpu::agent
