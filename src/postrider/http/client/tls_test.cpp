// TLS with generated certificates, valid ones and one for each way to be invalid.
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct CertificateFree {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, KeyFree>;
using Certificate = std::unique_ptr<X509, CertificateFree>;

struct Identity {
  Key key;
  Certificate certificate;
};

struct CertificateOptions {
  std::string name;
  std::string alternative_names{};  // "DNS:a.example,IP:127.0.0.1"
  long valid_from_days = -1;
  long valid_to_days = 1;
  const Identity* issuer = nullptr;  // null: self-signed
  bool is_authority = false;
};

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  ASSERT_NE(extension, nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Identity make_identity(const CertificateOptions& options) {
  static long serial = 1;
  Identity made{Key(EVP_EC_gen("P-256")), Certificate(X509_new())};
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_time_adj_ex(X509_getm_notBefore(certificate), static_cast<int>(options.valid_from_days), 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(certificate), static_cast<int>(options.valid_to_days), 0, nullptr);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1, 0);
  X509* issuer = options.issuer != nullptr ? options.issuer->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  if (options.is_authority) add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
  if (!options.alternative_names.empty())
    add_extension(certificate, issuer, NID_subject_alt_name, options.alternative_names);
  X509_sign(certificate, options.issuer != nullptr ? options.issuer->key.get() : made.key.get(),
            EVP_sha256());
  return made;
}

// A TLS endpoint that responds to every request; counts handshakes that resumed a session.
class TlsServer {
 public:
  enum class Wants { nothing, certificate };
  enum class Manners { good, key_updates, half_a_record };
  explicit TlsServer(const Identity& identity, int version_max = TLS1_3_VERSION, Wants wants = Wants::nothing,
                     Manners manners = Manners::good)
      : manners_(manners) {
    context_ = SSL_CTX_new(TLS_server_method());
    if (wants == Wants::certificate)
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_max_proto_version(context_, version_max);
    SSL_CTX_use_certificate(context_, identity.certificate.get());
    SSL_CTX_use_PrivateKey(context_, identity.key.get());
    SSL_CTX_set_session_id_context(context_, reinterpret_cast<const unsigned char*>("test"), 4);
    server_ = std::make_unique<ScriptedServer>([this](Peer& peer) { serve(peer); });
  }
  ~TlsServer() {
    server_.reset();
    SSL_CTX_free(context_);
  }
  std::string url(const std::string& host) const { return server_->url("/", host, "https"); }
  int resumed() const { return resumed_; }
  int accepted() const { return server_->accepted(); }
  std::string server_name() const { return server_name_; }
  void wait_for_begun_records(int count) const {
    for (int seen = begun_records_; seen < count; seen = begun_records_) begun_records_.wait(seen);
  }

 private:
  // Blocking; ends when the client closes, which happens before the server is destroyed.
  void serve(Peer& peer) {
    SSL* ssl = SSL_new(context_);
    BIO* bio = BIO_new_socket(peer.descriptor(), BIO_NOCLOSE);
    SSL_set_bio(ssl, bio, bio);
    if (SSL_accept(ssl) == 1) {
      if (SSL_session_reused(ssl)) ++resumed_;
      if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)) server_name_ = name;
      char bytes[8192];
      while (SSL_read(ssl, bytes, sizeof bytes) > 0) {
        while (manners_ == Manners::key_updates && update_key(ssl)) continue;
        SSL_write(ssl, kOkResponse.data(), static_cast<int>(kOkResponse.size()));
        if (manners_ == Manners::half_a_record) begin_record(peer);
      }
      SSL_shutdown(ssl);
    }
    ERR_clear_error();
    SSL_free(ssl);
  }

  void begin_record(const Peer& peer) {
    peer.write(std::string_view("\x17\x03\x03\x10\x00", 5));
    peer.wait_until_received();
    ++begun_records_;
    begun_records_.notify_all();
  }
  static bool update_key(SSL* ssl) {
    return SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1;
  }

  const Manners manners_;
  std::atomic<int> begun_records_ = 0;
  SSL_CTX* context_;
  std::atomic<int> resumed_ = 0;
  std::string server_name_;
  std::unique_ptr<ScriptedServer> server_;
};

class ClientTls : public ClientTest {
 protected:
  ClientTls() {
    std::signal(SIGPIPE, SIG_IGN);  // of the test's own servers
    FILE* file = fopen(ca_file_.c_str(), "w");
    PEM_write_X509(file, authority_.certificate.get());
    fclose(file);
    make_client({}, {.extra_ca_file = ca_file_, .trust_system_store = false});
  }
  ~ClientTls() override {
    client_->close();
    std::filesystem::remove(ca_file_);
  }
  Identity issued(CertificateOptions options) {
    options.issuer = &authority_;
    return make_identity(options);
  }

  const std::string ca_file_ =
      (std::filesystem::temp_directory_path() / ("postrider-test-ca-" + std::to_string(getpid()) + ".pem"))
          .string();
  const Identity authority_ = make_identity({.name = "Test Authority", .is_authority = true});
};

TEST_F(ClientTls, AVerifiedEndpointIsReachedAndItsConnectionKept) {
  TlsServer server(issued({.name = "x", .alternative_names = "DNS:localhost,IP:127.0.0.1"}));
  EXPECT_EQ(status_of(fetch(server.url("localhost"))), 200);
  EXPECT_EQ(server.server_name(), "localhost");
  const Exchange again = fetch(server.url("localhost"));
  EXPECT_TRUE(again.is_reused);
  EXPECT_EQ(status_of(again), 200);
  EXPECT_EQ(status_of(fetch(server.url("127.0.0.1"))), 200);  // by address, without SNI
  EXPECT_EQ(server.accepted(), 2);
  client_->close();
}

TEST_F(ClientTls, SessionsAreResumedOnNewConnections) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    make_client({.idle_total_max = 0}, {.extra_ca_file = ca_file_, .trust_system_store = false});
    TlsServer server(issued({.name = "x", .alternative_names = "DNS:localhost"}), version);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(status_of(fetch(server.url("localhost"))), 200);
    EXPECT_EQ(server.accepted(), 4);
    EXPECT_EQ(server.resumed(), 3);
    EXPECT_EQ(client_->stats().tls_resumed, 3u);
    client_->close();
  }
}

TEST_F(ClientTls, ALargeBodyArrivesWhole) {
  std::atomic<size_t> seen = 0;
  const Identity identity = issued({.name = "x", .alternative_names = "DNS:localhost"});
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context, identity.certificate.get());
  SSL_CTX_use_PrivateKey(context, identity.key.get());
  {
    ScriptedServer server([&](Peer& peer) {
      SSL* ssl = SSL_new(context);
      SSL_set_fd(ssl, peer.descriptor());
      char bytes[16384];
      if (SSL_accept(ssl) == 1)
        while (seen < 3'000'000) {
          const int count = SSL_read(ssl, bytes, sizeof bytes);
          if (count <= 0) break;
          seen += static_cast<size_t>(count);
        }
      SSL_write(ssl, kOkResponse.data(), static_cast<int>(kOkResponse.size()));
      SSL_free(ssl);
    });
    EXPECT_EQ(status_of(fetch(server.url("/", "localhost", "https"), 20s, std::string(3'000'000, 'b'))), 200);
    client_->close();
  }
  SSL_CTX_free(context);
  EXPECT_GE(seen, 3'000'000u);
}

TEST_F(ClientTls, AnExpiredCertificateIsNamedWithItsDate) {
  TlsServer server(issued(
      {.name = "x", .alternative_names = "DNS:localhost", .valid_from_days = -10, .valid_to_days = -2}));
  const Exchange exchange = fetch(server.url("localhost"));
  EXPECT_EQ(error_of(exchange), "tls_expired");
  const std::string day = base::to_rfc3339(base::wall_now() - std::chrono::hours(48)).substr(0, 10);
  EXPECT_EQ(exchange.failure()->detail, "TLS certificate expired on " + day);
}

TEST_F(ClientTls, ACertificateForAnotherHostIsNamed) {
  TlsServer server(issued({.name = "x", .alternative_names = "DNS:other.example,DNS:more.example"}));
  const Exchange by_name = fetch(server.url("localhost"));
  EXPECT_EQ(error_of(by_name), "tls_wrong_host");
  EXPECT_EQ(by_name.failure()->detail, "TLS certificate is for other.example, not localhost");
  EXPECT_EQ(error_of(fetch(server.url("127.0.0.1"))), "tls_wrong_host");
}

TEST_F(ClientTls, ASelfSignedCertificateIsNotTrusted) {
  TlsServer server(make_identity({.name = "x", .alternative_names = "DNS:localhost"}));
  const Exchange exchange = fetch(server.url("localhost"));
  EXPECT_EQ(error_of(exchange), "tls_untrusted");
  EXPECT_EQ(exchange.failure()->detail, "TLS certificate is self-signed");
}

TEST_F(ClientTls, AnUnknownAuthorityIsNotTrusted) {
  const Identity stranger = make_identity({.name = "Stranger", .is_authority = true});
  TlsServer server(make_identity({.name = "x", .alternative_names = "DNS:localhost", .issuer = &stranger}));
  const Exchange exchange = fetch(server.url("localhost"));
  EXPECT_EQ(error_of(exchange), "tls_untrusted");
  EXPECT_NE(exchange.failure()->detail.find("unknown authority"), std::string::npos);
}

TEST_F(ClientTls, AnOldProtocolVersionIsRefused) {
  TlsServer server(issued({.name = "x", .alternative_names = "DNS:localhost"}), TLS1_1_VERSION);
  EXPECT_EQ(error_of(fetch(server.url("localhost"))), "tls_failed");
}

TEST_F(ClientTls, ARefusalAfterTheHandshakeSaysWhy) {
  TlsServer server(issued({.name = "x", .alternative_names = "DNS:localhost"}), TLS1_3_VERSION,
                   TlsServer::Wants::certificate);
  const Exchange exchange = fetch(server.url("localhost"));
  EXPECT_EQ(error_of(exchange), "tls_failed");
  EXPECT_NE(exchange.failure()->detail.find("certificate required"), std::string::npos)
      << exchange.failure()->detail;
}

TEST_F(ClientTls, APlainEndpointFailsTheHandshake) {
  ScriptedServer server([](Peer& peer) {
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.wait_until_closed();
  });
  const Exchange exchange = fetch(server.url("/", "localhost", "https"));
  EXPECT_EQ(error_of(exchange), "tls_failed");
  EXPECT_TRUE(exchange.failure()->detail.starts_with("TLS handshake failed: ")) << exchange.failure()->detail;
}

TEST_F(ClientTls, AnEndpointThatClosesOrHangsInTheHandshakeIsToldApart) {
  ScriptedServer closing([](Peer&) {});
  const std::string error = error_of(fetch(closing.url("/", "localhost", "https")));
  EXPECT_TRUE(error == "tls_failed" || error == "connection_reset") << error;
  ScriptedServer hanging([](Peer& peer) { peer.hang(); });
  EXPECT_EQ(error_of(fetch(hanging.url("/", "localhost", "https"), 2s)), "timeout_tls");
}

TEST_F(ClientTls, TheSystemStoreLoads) {
  EXPECT_NO_THROW(TlsContext({}));
  EXPECT_THROW(TlsContext({.extra_ca_file = "/nonexistent.pem"}), std::runtime_error);
}

TEST_F(ClientTls, RecordsWithoutDataAreGivenUp) {
  const Identity identity = issued({.name = "127.0.0.1", .alternative_names = "IP:127.0.0.1"});
  TlsServer server(identity, TLS1_3_VERSION, TlsServer::Wants::nothing, TlsServer::Manners::key_updates);
  const Exchange exchange = fetch(server.url("127.0.0.1"), 1h);
  EXPECT_EQ(error_of(exchange), "tls_failed");
  EXPECT_LT(client_->stats().bytes_received, 1'000'000u);
}

TEST_F(ClientTls, AConnectionWithHalfARecordIsNotUsedAgain) {
  const Identity identity = issued({.name = "127.0.0.1", .alternative_names = "IP:127.0.0.1"});
  TlsServer server(identity, TLS1_3_VERSION, TlsServer::Wants::nothing, TlsServer::Manners::half_a_record);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(status_of(fetch(server.url("127.0.0.1"))), 200);
    server.wait_for_begun_records(i);
  }
  EXPECT_EQ(client_->stats().connections_reused, 0u);
  client_->close();  // the last connection may still be idle in the pool, and the server waits for its end
}

}  // namespace
}  // namespace postrider::http
