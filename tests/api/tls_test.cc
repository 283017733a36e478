#include "api/tls.h"

#include <gmock/gmock.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "api/certificate.h"
#include "api/server_fixture.h"
#include "api/temporary_folder.h"

namespace bmgpu::api {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::hours kDay{24};

class TlsTest : public ServerFixture {
 protected:
  Result<TlsIdentity> ensure(const std::vector<std::string>& names = {},
                             std::chrono::hours later = {}) {
    return ensure_self_made_tls(folder_.file("tls"), names,
                                std::chrono::system_clock::now() + later);
  }
  std::string content(const std::string& name) {
    return TemporaryFolder::read(folder_.file("tls/" + name));
  }
  Certificate server_certificate() {
    return std::move((*parse_certificates(content("server.pem")))[0]);
  }
  // True if a TLS handshake of at most this version succeeds.
  bool handshake(int version_max) {
    RawClient client(port_);
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_set_max_proto_version(context.get(), version_max);
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
    SSL_set_fd(tls.get(), client.fd());
    return SSL_connect(tls.get()) == 1;
  }

  TemporaryFolder folder_;
};

TEST_F(TlsTest, MakesWhatIsMissingOnce) {
  const auto first = ensure({"gpu.example", "192.0.2.7"});
  ASSERT_TRUE(first.ok()) << first.error().message;
  for (const char* name : {"ca.pem", "ca.key", "server.pem", "server.key"}) {
    struct stat facts {};
    ASSERT_EQ(::stat(folder_.file(std::string("tls/") + name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777, 0600U) << name;
  }
  const Certificate server = server_certificate();
  for (const char* name : {"gpu.example", "192.0.2.7", "localhost", "127.0.0.1", "::1"}) {
    EXPECT_TRUE(names_host(*server, name)) << name;
  }
  EXPECT_FALSE(names_host(*server, "other.example"));
  const std::string before = content("server.pem");
  const auto second = ensure({"gpu.example"});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->ca_sha256, first->ca_sha256);
  EXPECT_EQ(content("server.pem"), before);
}

TEST_F(TlsTest, RenewsTheServersCertificateUnderTheSameCa) {
  const auto first = ensure();
  ASSERT_TRUE(first.ok());
  const std::string before = content("server.pem");
  ASSERT_TRUE(ensure({}, 334 * kDay).ok());
  EXPECT_EQ(content("server.pem"), before);
  const auto renewed = ensure({}, 336 * kDay);  // less than 30 days are left
  ASSERT_TRUE(renewed.ok());
  EXPECT_NE(content("server.pem"), before);
  EXPECT_EQ(renewed->ca_sha256, first->ca_sha256);
  ASSERT_TRUE(ensure({"new.example"}, 336 * kDay).ok());
  EXPECT_TRUE(names_host(*server_certificate(), "new.example"));
}

TEST_F(TlsTest, NeverOutlivesOrReplacesTheCa) {
  ASSERT_TRUE(ensure().ok());
  ASSERT_TRUE(ensure({}, 3600 * kDay).ok());
  const Certificate ca = std::move((*parse_certificates(content("ca.pem")))[0]);
  EXPECT_LE(not_after(*server_certificate()), not_after(*ca));
  const auto expired = ensure({}, 3653 * kDay);
  ASSERT_FALSE(expired.ok());
  EXPECT_THAT(expired.error().message, HasSubstr("has expired"));
  EXPECT_EQ(certificate_sha256(*ca),
            certificate_sha256(*(*parse_certificates(content("ca.pem")))[0]));
}

TEST_F(TlsTest, RefusesHalfACa) {
  ASSERT_TRUE(ensure().ok());
  const std::string ca = content("ca.pem");
  std::filesystem::remove(folder_.file("tls/ca.key"));
  const auto refused = ensure();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("ca.key"));
  EXPECT_EQ(content("ca.pem"), ca);
}

TEST_F(TlsTest, RefusesNamesThatAreNone) {
  ASSERT_TRUE(ensure({"a.example"}).ok());
  for (const char* name :
       {"", "a b", "a,DNS:evil.example", "*.example", "-a", "a\nb", "ä.example"}) {
    EXPECT_EQ(ensure({name}).error().code, ErrorCode::InvalidArgument) << name;
  }
}

TEST_F(TlsTest, UsesGivenFiles) {
  const auto made = ensure();
  ASSERT_TRUE(made.ok());
  const auto given = use_tls_files(made->files);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->ca_sha256, made->ca_sha256);
  TlsFiles wrong = made->files;
  wrong.key = folder_.file("tls/ca.key");
  EXPECT_THAT(use_tls_files(wrong).error().message, HasSubstr("is not the key of"));
  wrong.key = folder_.file("tls/ca.pem");
  EXPECT_THAT(use_tls_files(wrong).error().message, HasSubstr("no unencrypted private key"));
  wrong.key = folder_.file("none");
  EXPECT_EQ(use_tls_files(wrong).error().code, ErrorCode::Unavailable);
}

TEST_F(TlsTest, SpeaksTls13Only) {
  const auto made = ensure();
  ASSERT_TRUE(made.ok());
  serve({}, made->files);
  EXPECT_TRUE(handshake(TLS1_3_VERSION));
  EXPECT_FALSE(handshake(TLS1_2_VERSION));
}

TEST_F(TlsTest, ClosesClientsThatNeverShakeHands) {
  const auto made = ensure();
  ASSERT_TRUE(made.ok());
  ServerLimits limits;
  limits.request_timeout = std::chrono::milliseconds(100);
  serve(limits, made->files);
  RawClient silent(port_);
  EXPECT_TRUE(silent.closed_by_peer());
  EXPECT_TRUE(handshake(TLS1_3_VERSION));
}

TEST_F(TlsTest, ListenerRefusesFilesThatDoNotFit) {
  const auto made = ensure();
  ASSERT_TRUE(made.ok());
  serve();
  auto server = Server::create({}, authenticate_for_test);
  ListenerOptions options;
  options.address = "0.0.0.0";
  options.tls = made->files;
  EXPECT_TRUE((*server)->listen(options).ok());
  options.tls->key = folder_.file("tls/ca.key");
  const auto refused = (*server)->listen(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace bmgpu::api
