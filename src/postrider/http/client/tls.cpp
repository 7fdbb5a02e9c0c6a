#include "postrider/http/client/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <unistd.h>
#include <array>
#include <stdexcept>

#include "postrider/http/client/tls_stream.hpp"

namespace postrider::http {

namespace {

constexpr long kSessionLifetimeSeconds = 3600;

// One bundle file, read once. A directory of certificates would be searched and parsed at every handshake.
bool load_system_store(SSL_CTX* context) {
  const char* from_environment = getenv(X509_get_default_cert_file_env());
  const std::array candidates = {from_environment, "/etc/ssl/certs/ca-certificates.crt",
                                 "/etc/pki/tls/certs/ca-bundle.crt", X509_get_default_cert_file()};
  for (const char* file : candidates)
    if (file != nullptr && access(file, R_OK) == 0) return SSL_CTX_load_verify_file(context, file) == 1;
  return SSL_CTX_set_default_verify_paths(context) == 1;
}

}  // namespace

TlsContext::TlsContext(const TlsOptions& options) : context_(nullptr) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) throw std::runtime_error("OpenSSL cannot create a TLS context");
  context_ = context;
  const auto fail = [&](const std::string& message) {
    SSL_CTX_free(context);
    ERR_clear_error();
    throw std::runtime_error(message);
  };

  if (options.trust_system_store && !load_system_store(context))
    fail("the system's certificate authorities cannot be loaded");
  if (!options.extra_ca_file.empty() && SSL_CTX_load_verify_file(context, options.extra_ca_file.c_str()) != 1)
    fail("cannot load certificates from " + options.extra_ca_file);
  ERR_clear_error();

  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, kProtocols, sizeof kProtocols - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_timeout(context, kSessionLifetimeSeconds);
  TlsStream::prepare(context);
}

TlsContext::~TlsContext() {
  SSL_CTX_free(static_cast<SSL_CTX*>(context_));
}

}  // namespace postrider::http
