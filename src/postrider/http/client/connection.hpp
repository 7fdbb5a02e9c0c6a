// One TCP connection of the client, plain or TLS, registered with the poller for its whole life.
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <string>
#include <string_view>

#include "postrider/base/ip_address.hpp"
#include "postrider/http/client/intrusive_list.hpp"
#include "postrider/http/client/poller.hpp"
#include "postrider/http/client/tls_stream.hpp"

namespace postrider::http {

using base::IpAddress;

class Connection;

// Connections with equal keys are interchangeable.
struct PoolKeyView {
  uint64_t profile = 0;  // DialProfile::id()
  std::string_view origin;
  bool operator==(const PoolKeyView&) const = default;
};
struct PoolKey {
  explicit PoolKey(const PoolKeyView& key) : profile(key.profile), origin(key.origin) {}
  PoolKeyView view() const { return {profile, origin}; }
  uint64_t profile;
  std::string origin;
};

class ConnectionUser {
 public:
  // Something may be readable or writable; see Connection::is_ready. May destroy the connection.
  virtual void on_connection_ready(Connection& connection) = 0;

 protected:
  ~ConnectionUser() = default;
};

// Readiness is remembered: a bit is set by the poller's edge and cleared when the system returns "would
// block".
class Connection final : private Watch, public ListHook<class ConnectionPool> {
 public:
  static constexpr uint32_t kReadable = EPOLLIN;
  static constexpr uint32_t kWritable = EPOLLOUT;

  // Takes the descriptor, a non-blocking socket.
  Connection(Poller& poller, int descriptor, const IpAddress& remote);
  ~Connection();

  bool is_ready(uint32_t events) const { return (ready_ & events) != 0; }
  void set_user(ConnectionUser* user) { user_ = user; }
  const IpAddress& remote() const { return remote_; }
  int take_connect_error();  // SO_ERROR

  void start_tls(std::unique_ptr<TlsStream> tls) { tls_ = std::move(tls); }
  TlsStream* tls() const { return tls_.get(); }
  int descriptor() const { return descriptor_; }
  IoResult handshake();

  IoResult read(char* to, size_t bytes_max);
  IoResult write(std::string_view bytes);
  // The peer has neither sent anything unexpected nor closed, so the connection may be used for another
  // request.
  bool is_quiet();
  // The same, by asking the system, which also knows what the poller has not reported yet.
  bool is_still_quiet();

  // For the pool, while idle.
  void leave_idle_list() { ListHook<ConnectionPool>::unlink(); }
  runtime::SteadyTime opened_at{};
  runtime::SteadyTime idle_since{};
  const PoolKey* pool_key = nullptr;

 private:
  void on_events(uint32_t epoll_events) override;
  void would_block(uint32_t event) { ready_ &= ~event; }
  void end();
  IoResult write_plain(std::string_view bytes) const;

  Poller& poller_;
  const int descriptor_;
  const IpAddress remote_;
  Poller::Token token_;
  uint32_t ready_ = 0;
  bool has_ended_ =
      false;  // the peer closed or reset: a short read then does not mean that everything was read
  ConnectionUser* user_ = nullptr;
  std::unique_ptr<TlsStream> tls_;
};

}  // namespace postrider::http
