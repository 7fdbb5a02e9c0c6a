// Trust and settings for outbound TLS, loaded once and shared by all clients of the process.
#pragma once

#include <memory>
#include <string>

namespace postrider::http {

struct TlsOptions {
  std::string extra_ca_file{};  // PEM; trusted in addition to the system's authorities
  bool trust_system_store = true;
};

// TLS 1.2 and up, certificates and host names always verified. Thread-safe after construction.
class TlsContext {
 public:
  explicit TlsContext(const TlsOptions& options);  // throws std::runtime_error when a file cannot be loaded
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  void* native() const { return context_; }  // SSL_CTX*, for http/ only

 private:
  void* context_;
};

}  // namespace postrider::http
