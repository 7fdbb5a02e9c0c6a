// One TLS connection on a non-blocking descriptor it does not own. OpenSSL works on the descriptor directly:
// an idle connection then keeps no buffers (about 28 KB against 80 KB with asio::ssl).
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/net_error.hpp"

namespace postrider::http {

using base::IpAddress;

struct SessionFree {
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
using TlsSession = std::unique_ptr<SSL_SESSION, SessionFree>;

// The result of one read, write or handshake step.
struct IoResult {
  // paused: there may be more to read, but one step reads no more than this.
  enum class Kind : uint8_t { moved, would_block, paused, closed, failed };
  Kind kind = Kind::would_block;
  size_t bytes = 0;       // when moved
  size_t wire_bytes = 0;  // taken from the socket, also when they held no data
  int system_error = 0;   // when failed; 0: not the system's but a protocol error
};

class TlsStream {
 public:
  // Settings of the context that streams rely on; called once per context.
  static void prepare(SSL_CTX* context);

  // `host` is verified and, when it is a name, sent as SNI. `session` may be null.
  TlsStream(SSL_CTX* context, int descriptor, const std::string& host,
            const std::optional<IpAddress>& address, const TlsSession& session);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  IoResult handshake();
  bool wants_write() const;  // what the last would_block waits for
  IoResult read(char* to, size_t bytes_max);
  IoResult write(std::string_view bytes);
  // True while the peer has sent only complete TLS records without data (session tickets).
  bool is_quiet();

  struct Failure {
    NetError error;
    std::string detail;
  };
  Failure failure() const { return failure_; }  // after a failed handshake or read
  bool is_resumed() const { return SSL_session_reused(ssl_) == 1; }
  TlsSession take_session() { return std::move(session_); }  // the newest ticket, if one came

 private:
  static int on_verify(int is_good, X509_STORE_CTX* store);
  static int on_session(SSL* ssl, SSL_SESSION* session);
  IoResult result_of(int returned);
  static std::string reason_of_library();

  bool is_inside_record() const;

  // OpenSSL reads records without data for as long as there are any. It reads the socket through this object,
  // so that one step ends after a bounded number of bytes.
  struct Wire {
    int descriptor;
    size_t read_bytes = 0;  // in this step
    bool is_paused = false;
  };
  void begin_step();

  friend struct WireBio;
  Wire wire_;
  SSL* ssl_;
  std::string host_;
  bool is_connected_ = false;
  bool is_broken_ = false;
  Failure failure_{NetError::tls_failed, {}};
  TlsSession session_;
};

}  // namespace postrider::http
