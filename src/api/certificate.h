// X.509 certificates and P-256 keys, made and read with OpenSSL. Private to api.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bmgpu::api {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeKey>;
using SystemTime = std::chrono::system_clock::time_point;

PrivateKey make_key();  // P-256

Certificate make_ca(EVP_PKEY& key, SystemTime now, std::chrono::hours lifetime);

// REQUIRES: each name is a host name or an IP address.
Certificate make_server_certificate(EVP_PKEY& key, X509& ca, EVP_PKEY& ca_key,
                                    const std::vector<std::string>& names, SystemTime now,
                                    std::chrono::hours lifetime);

bool is_certificate_name(const std::string& name);  // a host name or an IP address
bool names_host(X509& certificate, const std::string& name);
SystemTime not_after(const X509& certificate);
bool issued_by(X509& certificate, X509& ca);
std::string certificate_sha256(const X509& certificate);  // hex

std::string to_pem(X509& certificate);
std::string to_pem(EVP_PKEY& key);
// All certificates of a PEM text, in order; InvalidArgument if there is none.
Result<std::vector<Certificate>> parse_certificates(std::string_view pem);
Result<PrivateKey> parse_key(std::string_view pem);

}  // namespace bmgpu::api
