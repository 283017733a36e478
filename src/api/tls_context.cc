#include "api/tls_context.h"

namespace bmgpu::api {

Result<boost::asio::ssl::context> make_tls_context(const TlsFiles& files) {
  namespace ssl = boost::asio::ssl;
  ssl::context context(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
  boost::system::error_code failed;
  context.use_certificate_chain_file(files.certificate, failed);
  if (failed) {
    return Error{ErrorCode::InvalidArgument,
                 "cannot use the TLS certificate " + files.certificate + ": " + failed.message()};
  }
  context.use_private_key_file(files.key, ssl::context::pem, failed);
  if (failed) {
    return Error{ErrorCode::InvalidArgument,
                 "cannot use the TLS key " + files.key + ": " + failed.message()};
  }
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return Error{
        ErrorCode::InvalidArgument,
        "the TLS key " + files.key + " does not belong to the certificate " + files.certificate};
  }
  return context;
}

}  // namespace bmgpu::api
