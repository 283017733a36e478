#include "wire/ca_pin.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

namespace bmgpu::wire {
namespace {

struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};

Sha256Digest digest_of(const X509* certificate) {
  Sha256Digest digest{};
  unsigned int size = 0;
  check(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1,
        "ca pin: a certificate has no digest");
  return digest;
}

// Called instead of OpenSSL's own verification: the pinned certificate, which the server itself has
// to send, becomes the only trust anchor; then the chain, the dates, the purpose and the host are
// verified as usual.
int verify(X509_STORE_CTX* context, void* argument) {
  CaPin& pin = *static_cast<CaPin*>(argument);
  STACK_OF(X509)* sent = X509_STORE_CTX_get0_untrusted(context);
  X509* anchor = nullptr;
  for (int i = 0; i < sk_X509_num(sent); ++i) {
    X509* certificate = sk_X509_value(sent, i);
    const Sha256Digest digest = digest_of(certificate);
    pin.shown_ca = hex(digest);
    if (digest == pin.expected) {
      anchor = certificate;
    }
  }
  if (!pin.check) {
    return 1;
  }
  if (anchor == nullptr) {
    pin.problem = "the server's certificate does not come from this market's CA (SHA-256 " +
                  hex(pin.expected) +
                  "): another server answers there, or the market was set up anew; then "
                  "log in again with its new --ca-sha256";
    X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_UNTRUSTED);
    return 0;
  }
  const std::unique_ptr<STACK_OF(X509), FreeStack> trusted(sk_X509_new_null());
  check(trusted != nullptr && sk_X509_push(trusted.get(), anchor) > 0, "ca pin: out of memory");
  X509_STORE_CTX_set0_trusted_stack(context, trusted.get());
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  const int verified = X509_verify_cert(context);
  if (verified != 1) {
    pin.problem = std::string("the server's certificate is not valid: ") +
                  X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
  }
  return verified == 1 ? 1 : 0;
}

}  // namespace

boost::asio::ssl::context make_pinned_context(CaPin& pin) {
  boost::asio::ssl::context context(boost::asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
  SSL_CTX_set_verify(context.native_handle(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.native_handle(), verify, &pin);
  return context;
}

void expect_host(SSL* tls, const WebAddress& address) {
  X509_VERIFY_PARAM* wanted = SSL_get0_param(tls);
  if (address.host_is_ip) {
    check(X509_VERIFY_PARAM_set1_ip_asc(wanted, address.host.c_str()) == 1,
          "ca pin: an address that is none");
    return;
  }
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  check(X509_VERIFY_PARAM_set1_host(wanted, address.host.data(), address.host.size()) == 1,
        "ca pin: a host name that is none");
  check(SSL_set_tlsext_host_name(tls, address.host.c_str()) == 1, "ca pin: no SNI");
}

}  // namespace bmgpu::wire
