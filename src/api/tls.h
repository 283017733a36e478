// What a server proves itself with: a CA and a certificate of its own making, or given files.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/server.h"
#include "base/result.h"

namespace bmgpu::api {

struct TlsIdentity {
  TlsFiles files;
  std::string ca_sha256;  // hex SHA-256 of the CA certificate's DER: what clients pin
};

// Makes in `directory` whatever is missing of ca.pem, ca.key, server.pem (its certificate, then the
// CA's) and server.key: P-256, the folder 0700 and the files 0600, written whole or not at all.
//
// The CA lasts 10 years and is never replaced: clients pin it. The server's certificate names
// `names` (host names and IP addresses), localhost, 127.0.0.1 and ::1, lasts a year, and is made
// anew when less than 30 days are left or a name is missing. Not for two processes at once.
Result<TlsIdentity> ensure_self_made_tls(const std::string& directory,
                                         const std::vector<std::string>& names,
                                         std::chrono::system_clock::time_point now);

// Given PEM files: the certificate's chain ends with the CA (or certificate) that clients pin.
// Checks that both can be read and belong together.
Result<TlsIdentity> use_tls_files(const TlsFiles& files);

}  // namespace bmgpu::api
