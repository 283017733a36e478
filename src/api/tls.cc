#include "api/tls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "api/certificate.h"

namespace bmgpu::api {
namespace {

constexpr std::chrono::hours kDay{24};
constexpr std::chrono::hours kCaLifetime = 3652 * kDay;
constexpr std::chrono::hours kServerLifetime = 365 * kDay;
constexpr std::chrono::hours kRenewBefore = 30 * kDay;
constexpr std::size_t kNamesMax = 100;

Error failed(const std::string& file, std::string_view action) {
  return Error{ErrorCode::Unavailable,
               "cannot " + std::string(action) + " " + file + ": " + std::strerror(errno)};
}

Error in_file(const std::string& file, const Error& error) {
  return Error{error.code, file + ": " + error.message};
}

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

Result<std::string> read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) {
    return failed(file, "read");
  }
  return text;
}

// Whole or not at all, and durable: a lost CA key cannot be made again.
Result<void> write_file(const std::string& file, std::string_view text) {
  const std::string temporary = file + ".new";
  ::unlink(temporary.c_str());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    return failed(temporary, "create");
  }
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  ::close(fd);
  if (!written || ::rename(temporary.c_str(), file.c_str()) != 0) {
    return failed(file, "write");
  }
  return {};
}

struct Pair {
  Certificate certificate;
  PrivateKey key;
};

Result<Pair> read_pair(const std::string& certificate_file, const std::string& key_file) {
  const Result<std::string> certificate_pem = read_file(certificate_file);
  if (!certificate_pem.ok()) {
    return certificate_pem.error();
  }
  const Result<std::string> key_pem = read_file(key_file);
  if (!key_pem.ok()) {
    return key_pem.error();
  }
  Result<std::vector<Certificate>> certificates = parse_certificates(*certificate_pem);
  if (!certificates.ok()) {
    return in_file(certificate_file, certificates.error());
  }
  Result<PrivateKey> key = parse_key(*key_pem);
  if (!key.ok()) {
    return in_file(key_file, key.error());
  }
  if (X509_check_private_key((*certificates)[0].get(), key->get()) != 1) {
    return Error{ErrorCode::InvalidArgument, key_file + " is not the key of " + certificate_file};
  }
  return Pair{std::move((*certificates)[0]), std::move(*key)};
}

// The CA of the folder; made if neither of its files is there. Half of it is never filled up: the
// pinned certificate without its key is of no use, and a new one would lock every client out.
Result<Pair> ensure_ca(const std::string& directory, SystemTime now) {
  const std::string certificate_file = directory + "/ca.pem";
  const std::string key_file = directory + "/ca.key";
  if (exists(certificate_file) || exists(key_file)) {
    Result<Pair> ca = read_pair(certificate_file, key_file);
    if (ca.ok() && not_after(*ca->certificate) <= now) {
      return Error{ErrorCode::Refused, certificate_file +
                                           " has expired; remove the folder to make a new CA, then "
                                           "every client has to log in again"};
    }
    return ca;
  }
  PrivateKey key = make_key();
  Certificate certificate = make_ca(*key, now, kCaLifetime);
  Result<void> kept = write_file(key_file, to_pem(*key));
  if (kept.ok()) {
    kept = write_file(certificate_file, to_pem(*certificate));
  }
  if (!kept.ok()) {
    return kept.error();
  }
  return Pair{std::move(certificate), std::move(key)};
}

bool still_good(const TlsFiles& files, X509& ca, const std::vector<std::string>& names,
                SystemTime now) {
  const Result<Pair> server = read_pair(files.certificate, files.key);
  return server.ok() && issued_by(*server->certificate, ca) &&
         not_after(*server->certificate) > now + kRenewBefore &&
         std::all_of(names.begin(), names.end(), [&](const std::string& name) {
           return names_host(*server->certificate, name);
         });
}

}  // namespace

Result<TlsIdentity> ensure_self_made_tls(const std::string& directory,
                                         const std::vector<std::string>& names, SystemTime now) {
  std::vector<std::string> all = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& name : names) {
    if (!is_certificate_name(name)) {
      return Error{ErrorCode::InvalidArgument,
                   "'" + name.substr(0, 100) + "' is no host name or IP address for a certificate"};
    }
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      all.push_back(name);
    }
  }
  if (all.size() > kNamesMax) {
    return Error{ErrorCode::InvalidArgument,
                 "a certificate takes at most " + std::to_string(kNamesMax) + " names"};
  }
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed(directory, "create");
  }
  const Result<Pair> ca = ensure_ca(directory, now);
  if (!ca.ok()) {
    return ca.error();
  }
  TlsIdentity identity{{directory + "/server.pem", directory + "/server.key"},
                       certificate_sha256(*ca->certificate)};
  if (still_good(identity.files, *ca->certificate, all, now)) {
    return identity;
  }
  const PrivateKey key = make_key();
  const auto left =
      std::chrono::duration_cast<std::chrono::hours>(not_after(*ca->certificate) - now);
  const Certificate server = make_server_certificate(*key, *ca->certificate, *ca->key, all, now,
                                                     std::min(kServerLifetime, left));
  Result<void> kept = write_file(identity.files.key, to_pem(*key));
  if (kept.ok()) {
    kept = write_file(identity.files.certificate, to_pem(*server) + to_pem(*ca->certificate));
  }
  return kept.ok() ? Result<TlsIdentity>(identity) : kept.error();
}

Result<TlsIdentity> use_tls_files(const TlsFiles& files) {
  const Result<Pair> server = read_pair(files.certificate, files.key);
  if (!server.ok()) {
    return server.error();
  }
  const Result<std::string> pem = read_file(files.certificate);
  if (!pem.ok()) {
    return pem.error();
  }
  const Result<std::vector<Certificate>> chain = parse_certificates(*pem);
  if (!chain.ok()) {
    return in_file(files.certificate, chain.error());
  }
  return TlsIdentity{files, certificate_sha256(*chain->back())};
}

}  // namespace bmgpu::api
