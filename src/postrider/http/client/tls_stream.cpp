#include "postrider/http/client/tls_stream.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>

#include "postrider/base/check.hpp"

namespace postrider::http {

namespace {

// More than the longest record, so that every step that pauses has made progress.
constexpr size_t kStepBytesMax = 20 * 1024;

}  // namespace

// A socket BIO whose writes cannot raise SIGPIPE and whose reads are limited per step.
struct WireBio {
  using Wire = TlsStream::Wire;
  static Wire& wire_of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* from, int bytes) {
    BIO_clear_retry_flags(bio);
    const auto sent = send(wire_of(bio).descriptor, from, static_cast<size_t>(bytes), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static int read(BIO* bio, char* to, int bytes_max) {
    Wire& wire = wire_of(bio);
    BIO_clear_retry_flags(bio);
    if (wire.read_bytes >= kStepBytesMax) {
      wire.is_paused = true;
      BIO_set_retry_read(bio);
      return -1;
    }
    const auto received = recv(wire.descriptor, to, static_cast<size_t>(bytes_max), 0);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    if (received > 0) wire.read_bytes += static_cast<size_t>(received);
    return static_cast<int>(received);
  }

  static long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    switch (command) {
      case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
      case BIO_CTRL_FLUSH:
      case BIO_CTRL_DUP:
        return 1;
      default:
        return 0;
    }
  }
};

namespace {

BIO_METHOD* bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "limited socket");
    CHECK(made != nullptr);
    BIO_meth_set_write(made, WireBio::write);
    BIO_meth_set_read(made, WireBio::read);
    BIO_meth_set_ctrl(made, WireBio::control);
    return made;
  }();
  return method;
}

int stream_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  char text[16] = "?";
  if (time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1) strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

// Certificates come from outside: only characters of host names are shown.
std::string printable_name(const ASN1_STRING* text) {
  std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                   static_cast<size_t>(ASN1_STRING_length(text)));
  if (name.size() > 100) name.resize(100);
  for (char& c : name)
    if (c <= ' ' || c >= 0x7f) c = '?';
  return name;
}

std::string first_name_of(X509* certificate) {
  std::string name;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && name.empty(); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(names, i);
    if (entry->type == GEN_DNS) name = printable_name(entry->d.dNSName);
  }
  GENERAL_NAMES_free(names);
  if (!name.empty()) return name;
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "another host";
  return printable_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

void TlsStream::prepare(SSL_CTX* context) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &TlsStream::on_verify);
  SSL_CTX_sess_set_new_cb(context, &TlsStream::on_session);
}

TlsStream::TlsStream(SSL_CTX* context, int descriptor, const std::string& host,
                     const std::optional<IpAddress>& address, const TlsSession& session)
    : wire_{.descriptor = descriptor}, ssl_(SSL_new(context)), host_(host) {
  CHECK(ssl_ != nullptr);
  BIO* bio = BIO_new(bio_method());
  CHECK(bio != nullptr);
  BIO_set_data(bio, &wire_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_ex_data(ssl_, stream_index(), this);
  if (address) {
    X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl_), address->bytes.data(), address->is_v6 ? 16 : 4);
  } else {
    SSL_set_tlsext_host_name(ssl_, host.c_str());
    SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(ssl_, host.c_str());
  }
  if (session) SSL_set_session(ssl_, session.get());
  SSL_set_connect_state(ssl_);
}

TlsStream::~TlsStream() {
  // Without a shutdown OpenSSL marks the session as not resumable.
  if (is_connected_ && !is_broken_) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl_);
  ERR_clear_error();
}

int TlsStream::on_verify(int is_good, X509_STORE_CTX* store) {
  if (is_good == 1) return 1;
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* self = static_cast<TlsStream*>(SSL_get_ex_data(ssl, stream_index()));
  X509* certificate = X509_STORE_CTX_get_current_cert(store);
  const int code = X509_STORE_CTX_get_error(store);
  const bool is_leaf = X509_STORE_CTX_get_error_depth(store) == 0;
  const std::string subject = is_leaf ? "TLS certificate" : "TLS certificate's authority";
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      self->failure_ = {NetError::tls_expired,
                        subject + " expired on " + date_of(X509_get0_notAfter(certificate))};
      break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      self->failure_ = {NetError::tls_expired,
                        subject + " is not valid before " + date_of(X509_get0_notBefore(certificate))};
      break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      self->failure_ = {NetError::tls_wrong_host,
                        "TLS certificate is for " + first_name_of(certificate) + ", not " + self->host_};
      break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      self->failure_ = {NetError::tls_untrusted, "TLS certificate is self-signed"};
      break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      self->failure_ = {
          NetError::tls_untrusted,
          "TLS certificate signed by unknown authority, or an intermediate certificate is missing"};
      break;
    default:
      self->failure_ = {NetError::tls_untrusted,
                        "TLS certificate not accepted: " + std::string(X509_verify_cert_error_string(code))};
  }
  return 0;
}

int TlsStream::on_session(SSL* ssl, SSL_SESSION* session) {
  static_cast<TlsStream*>(SSL_get_ex_data(ssl, stream_index()))->session_.reset(session);
  return 1;  // the reference is ours now
}

IoResult TlsStream::result_of(int returned) {
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      if (wire_.is_paused) return {.kind = IoResult::Kind::paused};
      return {.kind = IoResult::Kind::would_block};
    case SSL_ERROR_WANT_WRITE:
      return {.kind = IoResult::Kind::would_block};
    case SSL_ERROR_ZERO_RETURN:
      return {.kind = IoResult::Kind::closed};
    case SSL_ERROR_SYSCALL: {
      const int system_error = errno;
      is_broken_ = true;
      if (system_error == 0) return {.kind = IoResult::Kind::closed};
      return {.kind = IoResult::Kind::failed, .system_error = system_error};
    }
    default:
      is_broken_ = true;
      return {.kind = IoResult::Kind::failed};
  }
}

std::string TlsStream::reason_of_library() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason != nullptr ? reason : "protocol error";
}

void TlsStream::begin_step() {
  ERR_clear_error();
  errno = 0;
  wire_.read_bytes = 0;
  wire_.is_paused = false;
}

IoResult TlsStream::handshake() {
  begin_step();
  const int returned = SSL_connect(ssl_);
  IoResult result{.kind = IoResult::Kind::moved};
  if (returned == 1)
    is_connected_ = true;
  else
    result = result_of(returned);
  if (result.kind == IoResult::Kind::failed && result.system_error == 0 && failure_.detail.empty())
    failure_.detail = "TLS handshake failed: " + reason_of_library();
  result.wire_bytes = wire_.read_bytes;
  return result;
}

bool TlsStream::wants_write() const {
  return SSL_want_write(ssl_);
}

IoResult TlsStream::read(char* to, size_t bytes_max) {
  begin_step();
  size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_, to, bytes_max, &bytes);
  IoResult result{.kind = IoResult::Kind::moved, .bytes = bytes};
  if (returned != 1) result = result_of(returned);
  if (result.kind == IoResult::Kind::failed && result.system_error == 0)
    failure_ = {NetError::tls_failed, "TLS failed: " + reason_of_library()};
  result.wire_bytes = wire_.read_bytes;
  return result;
}

IoResult TlsStream::write(std::string_view text) {
  begin_step();
  size_t bytes = 0;
  const int returned = SSL_write_ex(ssl_, text.data(), text.size(), &bytes);
  if (returned == 1) return {.kind = IoResult::Kind::moved, .bytes = bytes};
  return result_of(returned);
}

bool TlsStream::is_quiet() {
  begin_step();
  char byte = 0;
  size_t bytes = 0;
  const int returned = SSL_peek_ex(ssl_, &byte, 1, &bytes);
  return returned != 1 && result_of(returned).kind == IoResult::Kind::would_block && !is_inside_record();
}

// The rest of a record that began while the connection was idle would be read as part of the next response.
bool TlsStream::is_inside_record() const {
  return SSL_has_pending(ssl_) == 1 || std::string_view(SSL_rstate_string(ssl_)) == "RB";
}

}  // namespace postrider::http
