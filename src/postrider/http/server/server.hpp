// An HTTP/1.1 server for one loop. It rejects a request that cannot be parsed safely at its first invalid
// byte. TLS and HTTP/2 belong to the load balancer.
//
//   http::Listener listener({.address = "127.0.0.1:8090"});        // one per process
//   http::Server server(loop, listener, router, metrics, options); // one per loop; they share the listener
//   server.start();                                                // on the loop's thread
//   …
//   server.stop_accepting();
//   co_await server.drain(deadline);
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/base/time.hpp"
#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::runtime {
class Loop;
}
namespace postrider::http {

// A handler's decision from the head of a request, before a large body is read.
struct Admission {
  size_t body_bytes_max = 0;  // 0: the server's limit
  // The authenticated caller that the body's memory is charged to. Empty: not authenticated; the body then
  // counts against a smaller budget.
  std::string owner{};
  std::optional<Response> rejection{};  // sent instead of reading the body
};

class Handler {
 public:
  virtual ~Handler() = default;

  // The limit of a body that is read without asking admit(); 0 means the server's limit.
  virtual size_t body_bytes_max(const Request& /*head*/) const { return 0; }
  // Asked before any of a body is read that is larger than kOrdinaryBodyBytesMax, or may become so. The
  // body of `head` is empty.
  virtual runtime::Task<Admission> admit(Request& head);

  // The requests of one connection are handled in order. An exception is a bug: it is logged and
  // the response is 503, never a broken connection.
  virtual runtime::Task<Response> handle(Request& request) = 0;
};

// Bodies up to this size are read before the caller is authenticated. They need no budget: the number of
// connections limits them.
inline constexpr size_t kOrdinaryBodyBytesMax = 16 << 10;

struct ServerOptions {
  size_t body_bytes_max = 1 << 20;
  size_t head_bytes_max = 16 << 10;
  size_t fields_max = 100;
  size_t target_bytes_max = 8 << 10;
  std::chrono::milliseconds head_timeout{10'000};  // first byte of a request to the end of its head
  std::chrono::milliseconds body_timeout{10'000};  // the longest pause, and the window of the rate below
  size_t body_bytes_per_second_min = 16 << 10;
  std::chrono::milliseconds write_timeout{30'000};  // the client reads none of the response
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  // After a rejection, so that the response is not lost in a reset.
  std::chrono::milliseconds linger_timeout{1'000};
  std::vector<base::Network> trusted_proxies{};  // whose X-Forwarded-For is used
  // Neither these nor trusted proxies are counted by address.
  std::vector<base::Network> uncounted_networks{*base::Network::parse("127.0.0.0/8"),
                                                *base::Network::parse("::1")};
};

struct ListenerState;

// The listening socket and what the servers on it share. Throws std::system_error when it cannot listen.
class Listener {
 public:
  struct Options {
    std::string address =
        "127.0.0.1:8090";  // "host:port" with a literal address, "[::1]:8090"; port 0 takes a free one
    size_t connections_max = 1024;  // the next ones get 503
    // Of one client address (IPv6: one /64), for connections without an authenticated request so far; 0: no
    // limit. The next ones get 503.
    size_t connections_per_address_max = 0;
    // Large request bodies in memory, over all connections; beyond: 503. Callers that are not authenticated
    // have a budget of their own.
    size_t body_bytes_max = 256 << 20;
    size_t unauthenticated_body_bytes_max = 64 << 20;
    bool is_open_at_once = true;  // false: the port is bound, and connections are refused until open()
  };
  explicit Listener(Options options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  void open();

  uint16_t port() const;
  std::string address() const;  // as bound, "127.0.0.1:8090"
  size_t connections() const;

 private:
  friend class Server;
  std::shared_ptr<ListenerState> state_;
};

// The metrics of a server. The owner names the series; by default nothing is counted.
struct ServerMetrics {
  std::array<telemetry::Counter, 5> requests;  // by class of the response's status, 1xx to 5xx
  telemetry::Gauge connections;                // open ones
};

// All members on the loop's thread. Destroyed only before start() or after drain() has ended.
class Server {
 public:
  Server(runtime::Loop& loop, const Listener& listener, Handler& handler, ServerMetrics metrics = {},
         ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  void stop_accepting();
  // Closes idle connections, lets requests in progress finish with `connection: close`, and cuts what is left
  // at the deadline. Ends when no connection and no handler is left; a handler that never ends holds it up.
  runtime::Task<void> drain(base::SteadyTime deadline);
  size_t connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::http
