#include <gmock/gmock.h>
#include <sys/stat.h>

#include "bmgpu/v1/market.pb.h"
#include "command_line.h"

namespace bmgpu::cli {
namespace {

using testing::HasSubstr;

const std::string kCa(64, 'a');

class LoginTest : public testing::Test {
 protected:
  LoginTest() {
    bmcli.variables["BMCLI_CONFIG"] = bmcli.folder().path("new/dir/c.yaml");
    bmcli.market.on<v1::GetInfoRequest, v1::GetInfoResponse>(
        "GetInfo", [](const v1::GetInfoRequest&, v1::GetInfoResponse& info) {
          info.set_token_name("alice");
          info.set_account("account-2");
          info.set_role(v1::ROLE_TENANT);
          info.set_version("0.1.0");
          info.set_now_unix_ms(1'800'000'000'000);
          return Result<void>();
        });
  }
  bool nothing_written() const { return !std::filesystem::exists(bmcli.folder().path("new")); }

  CommandLine bmcli;
};

TEST_F(LoginTest, WritesAPrivateFileThatWorks) {
  const Ran ran =
      bmcli.run({"login", "https://h:1/", "--ca-sha256", std::string(64, 'A')}, " bm1_tenant_z \n");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("as alice (account-2, role tenant)"));
  EXPECT_EQ(ran.out.find("bm1_"), std::string::npos);
  struct stat facts {};
  ASSERT_EQ(::stat(bmcli.folder().path("new/dir/c.yaml").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_EQ(bmcli.run({"version"}).code, 0);
  const wire::Endpoint used = bmcli.market.endpoints().back();
  EXPECT_EQ(used.url, "https://h:1");
  EXPECT_EQ(used.ca_sha256, kCa);
  EXPECT_EQ(used.bearer, "bm1_tenant_z");
  for (const auto& entry : std::filesystem::directory_iterator(bmcli.folder().path("new/dir"))) {
    EXPECT_EQ(entry.path().filename(), "c.yaml");  // no half-written file beside it
  }
}

TEST_F(LoginTest, StateDirectorySaysEverything) {
  bmcli.folder().write(
      "bmd/endpoint.json",
      "{\"url\":\"https://h:2\",\"heartbeat\":\"h:3\",\"ca_sha256\":\"" + kCa + "\"}");
  bmcli.folder().write("bmd/operator.token", "bm1_operator_q\n");
  const std::string state_dir = bmcli.folder().path("bmd");
  ASSERT_EQ(bmcli.run({"login", "--state-dir", state_dir}).code, 0);
  EXPECT_EQ(bmcli.market.endpoints().back().bearer, "bm1_operator_q");
  EXPECT_EQ(bmcli.run({"login", "--state-dir", state_dir + "/none"}).code, 2);
  EXPECT_EQ(bmcli.run({"login", "https://h:1", "--state-dir", state_dir}).code, 2);
}

TEST_F(LoginTest, ShowsTheFingerprintAndAsksOnATerminal) {
  bmcli.shown_ca = kCa;
  bmcli.terminal = true;
  const std::string token = bmcli.folder().write("t", "bm1_tenant_z");
  const Ran no = bmcli.run({"login", "https://h:1", "--token-file", token}, "n\n");
  EXPECT_EQ(no.code, 1);
  EXPECT_THAT(no.err, HasSubstr(kCa));
  EXPECT_TRUE(nothing_written());
  EXPECT_EQ(bmcli.run({"login", "https://h:1", "--token-file", token}, "y\n").code, 0);
  EXPECT_EQ(bmcli.market.endpoints().back().ca_sha256, kCa);
}

TEST_F(LoginTest, RefusesAnUnknownAuthorityInScripts) {
  bmcli.shown_ca = kCa;
  const Ran ran = bmcli.run({"login", "https://h:1"}, "bm1_tenant_z\n");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--ca-sha256"));
  EXPECT_TRUE(nothing_written());
}

TEST_F(LoginTest, WritesNothingThatDoesNotWork) {
  EXPECT_EQ(bmcli.run({"login", "http://h:1"}, "").code, 2);  // no token
  EXPECT_EQ(bmcli.run({"login", "http://h:1"}, "two words\n").code, 2);
  EXPECT_EQ(bmcli.run({"login", "ftp://h:1"}, "t\n").code, 2);
  EXPECT_EQ(bmcli.run({"login"}, "t\n").code, 2);
  EXPECT_EQ(bmcli.run({"login", "https://h:1", "--ca-sha256", "12"}, "t\n").code, 2);
  bmcli.market.fail_everything({ErrorCode::Unauthenticated, "revoked"});
  EXPECT_EQ(bmcli.run({"login", "http://h:1"}, "t\n").code, 4);
  EXPECT_TRUE(nothing_written());
}

TEST_F(LoginTest, VariablesOutweighTheFile) {
  ASSERT_EQ(bmcli.run({"login", "http://h:1"}, "t1\n").code, 0);
  bmcli.variables["BMCLI_URL"] = "https://h:9";
  bmcli.variables["BMCLI_CA_SHA256"] = kCa;
  bmcli.variables["BMCLI_TOKEN_FILE"] = bmcli.folder().write("t2", "t2\n");
  ASSERT_EQ(bmcli.run({"version"}).code, 0);
  EXPECT_EQ(bmcli.market.endpoints().back().url, "https://h:9");
  EXPECT_EQ(bmcli.market.endpoints().back().bearer, "t2");
  bmcli.variables["BMCLI_CA_SHA256"] = "";
  EXPECT_EQ(bmcli.run({"ps"}).code, 2);  // https without a pin
}

TEST_F(LoginTest, DoctorNamesWhatIsWrongAndWhatToDo) {
  bmcli.shown_ca = kCa;
  ASSERT_EQ(bmcli.run({"login", "https://h:1", "--ca-sha256", kCa}, "t1\n").code, 0);
  const Ran well = bmcli.run({"doctor"});
  EXPECT_EQ(well.code, 0);
  EXPECT_EQ(well.out.find("failed"), std::string::npos);
  EXPECT_THAT(well.out, HasSubstr("ok  token: alice"));

  ASSERT_EQ(::chmod(bmcli.folder().path("new/dir/c.yaml").c_str(), 0644), 0);
  EXPECT_THAT(bmcli.run({"doctor"}).out, HasSubstr("warning  configuration"));
  bmcli.shown_ca = std::string(64, 'b');
  const Ran other = bmcli.run({"doctor"});
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.out, HasSubstr("failed  encryption: another certificate authority"));
  bmcli.shown_ca = kCa;
  bmcli.market.on<v1::GetInfoRequest, v1::GetInfoResponse>(
      "GetInfo", [](const v1::GetInfoRequest&, v1::GetInfoResponse& info) {
        info.set_version("9.9");
        info.set_now_unix_ms(1'800'003'600'000);
        return Result<void>();
      });
  const Ran odd = bmcli.run({"doctor"});
  EXPECT_THAT(odd.out, HasSubstr("warning  clock: differs from the market's by 1h"));
  EXPECT_THAT(odd.out, HasSubstr("warning  version"));
  EXPECT_EQ(odd.code, 0);
}

}  // namespace
}  // namespace bmgpu::cli
