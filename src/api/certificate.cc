#include "api/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "base/check.h"
#include "wire/hash.h"

namespace bmgpu::api {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

void need(bool done) { check(done, "certificate: OpenSSL cannot make it"); }

bool is_ip(const std::string& name) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, name.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

std::string text_in(BIO& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(&bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

void add_extension(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  need(extension != nullptr);
  need(X509_add_ext(&certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// Everything but extensions, issuer and signature.
Certificate begin(EVP_PKEY& key, const std::string& common_name, SystemTime now,
                  std::chrono::hours lifetime) {
  constexpr std::chrono::hours kClockSlack{1};  // clients whose clock is a little behind
  Certificate certificate(X509_new());
  need(certificate != nullptr);
  need(X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  unsigned char serial[16];
  need(RAND_bytes(serial, sizeof serial) == 1);
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, fixed length
  BIGNUM* number = BN_bin2bn(serial, sizeof serial, nullptr);
  need(number != nullptr);
  need(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get())) != nullptr);
  BN_free(number);
  const auto at = [](SystemTime time) { return std::chrono::system_clock::to_time_t(time); };
  need(ASN1_TIME_set(X509_getm_notBefore(certificate.get()), at(now - kClockSlack)) != nullptr);
  need(ASN1_TIME_set(X509_getm_notAfter(certificate.get()), at(now + lifetime)) != nullptr);
  need(X509_set_pubkey(certificate.get(), &key) == 1);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  need(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                  -1, 0) == 1);
  return certificate;
}

}  // namespace

PrivateKey make_key() {
  PrivateKey key(EVP_EC_gen("P-256"));
  need(key != nullptr);
  return key;
}

Certificate make_ca(EVP_PKEY& key, SystemTime now, std::chrono::hours lifetime) {
  Certificate ca = begin(key, "BM-GPU market CA", now, lifetime);
  need(X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get())) == 1);
  add_extension(*ca, *ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(*ca, *ca, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(*ca, *ca, NID_subject_key_identifier, "hash");
  need(X509_sign(ca.get(), &key, EVP_sha256()) > 0);
  return ca;
}

Certificate make_server_certificate(EVP_PKEY& key, X509& ca, EVP_PKEY& ca_key,
                                    const std::vector<std::string>& names, SystemTime now,
                                    std::chrono::hours lifetime) {
  std::string alternatives;
  for (const std::string& name : names) {
    check(is_certificate_name(name), "certificate: a name that is none");
    alternatives += (alternatives.empty() ? "" : ",") + std::string(is_ip(name) ? "IP:" : "DNS:");
    alternatives += name;
  }
  Certificate server = begin(key, "BM-GPU market", now, lifetime);
  need(X509_set_issuer_name(server.get(), X509_get_subject_name(&ca)) == 1);
  add_extension(*server, ca, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*server, ca, NID_key_usage, "critical,digitalSignature");
  add_extension(*server, ca, NID_ext_key_usage, "serverAuth");
  add_extension(*server, ca, NID_subject_key_identifier, "hash");
  add_extension(*server, ca, NID_authority_key_identifier, "keyid:always");
  add_extension(*server, ca, NID_subject_alt_name, alternatives);
  need(X509_sign(server.get(), &ca_key, EVP_sha256()) > 0);
  return server;
}

bool is_certificate_name(const std::string& name) {
  if (is_ip(name)) {
    return true;
  }
  return !name.empty() && name.size() <= 253 && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.';
         });
}

bool names_host(X509& certificate, const std::string& name) {
  return is_ip(name) ? X509_check_ip_asc(&certificate, name.c_str(), 0) == 1
                     : X509_check_host(&certificate, name.data(), name.size(), 0, nullptr) == 1;
}

SystemTime not_after(const X509& certificate) {
  std::tm parts{};
  need(ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &parts) == 1);
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

bool issued_by(X509& certificate, X509& ca) {
  EVP_PKEY* key = X509_get0_pubkey(&ca);
  return key != nullptr && X509_check_issued(&ca, &certificate) == X509_V_OK &&
         X509_verify(&certificate, key) == 1;
}

std::string certificate_sha256(const X509& certificate) {
  wire::Sha256Digest digest{};
  need(X509_digest(&certificate, EVP_sha256(), digest.data(), nullptr) == 1);
  return wire::hex(digest);
}

std::string to_pem(X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  need(PEM_write_bio_X509(bio.get(), &certificate) == 1);
  return text_in(*bio);
}

std::string to_pem(EVP_PKEY& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  need(PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_in(*bio);
}

Result<std::vector<Certificate>> parse_certificates(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<Certificate> found;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(certificate);
  }
  if (found.empty()) {
    return Error{ErrorCode::InvalidArgument, "it holds no certificate in PEM form"};
  }
  return found;
}

Result<PrivateKey> parse_key(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // Without a password callback OpenSSL would ask on the terminal.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  if (key == nullptr) {
    return Error{ErrorCode::InvalidArgument, "it holds no unencrypted private key in PEM form"};
  }
  return key;
}

}  // namespace bmgpu::api
