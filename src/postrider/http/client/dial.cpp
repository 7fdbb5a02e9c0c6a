#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>

#include "postrider/base/fail_point.hpp"
#include "postrider/http/client/refused_destination.hpp"
#include "postrider/http/client/state.hpp"

namespace postrider::http {

using runtime::Task;

namespace {

constexpr size_t addresses_tried_max = 4;
constexpr std::chrono::milliseconds connect_time_min{1'000};  // for one of several addresses

std::chrono::microseconds since(runtime::SteadyTime start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(base::BootClock::now() - start);
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  SocketAddress(const IpAddress& address, uint16_t port) {
    if (address.is_v6) {
      auto* in = reinterpret_cast<sockaddr_in6*>(&storage);
      in->sin6_family = AF_INET6;
      in->sin6_port = htons(port);
      std::memcpy(&in->sin6_addr, address.bytes.data(), 16);
      size = sizeof *in;
    } else {
      auto* in = reinterpret_cast<sockaddr_in*>(&storage);
      in->sin_family = AF_INET;
      in->sin_port = htons(port);
      std::memcpy(&in->sin_addr, address.bytes.data(), 4);
      size = sizeof *in;
    }
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// A socket on its way to the address, or -1 with errno set.
int start_connect(const IpAddress& address, uint16_t port, const std::optional<IpAddress>& bind_address) {
  const int descriptor =
      socket(address.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (descriptor < 0) return -1;
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  bool is_started = true;
  if (bind_address) {
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const SocketAddress source(*bind_address, 0);
    is_started = bind(descriptor, source.get(), source.size) == 0;
  }
  const SocketAddress target(address, port);
  is_started = is_started && (::connect(descriptor, target.get(), target.size) == 0 || errno == EINPROGRESS);
  if (is_started) return descriptor;
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

// Without IPv6 here an address of that kind cannot be dialled: that is how this network is, and for good. The
// same of an IPv4 address means that there is no port left.
NetError net_error_at(const IpAddress& address, int system_error) {
  if (system_error == EADDRNOTAVAIL && address.is_v6) return NetError::unreachable;
  return net_error_of(system_error);
}

void fail_by_system(Flight& flight, int system_error, const IpAddress& address) {
  const NetError error = net_error_at(address, system_error);
  if (error == NetError::local_failure)
    flight.fail(error, std::string(describe(error)) + ": " + std::generic_category().message(system_error));
  else
    flight.fail(error);
}

// Of several addresses' failures the first that tells something about the endpoint counts: that there is no
// way to its IPv6 address must not hide that it refuses over IPv4.
class TellingFailure {
 public:
  void note(const Exchange& exchange) {
    const NetFailure* failure = exchange.failure();
    if (failure == nullptr || kept_ || failure->error == NetError::local_failure ||
        failure->error == NetError::unreachable)
      return;
    kept_ = *failure;
    remote_ = exchange.remote;
  }
  void restore(Exchange& exchange) const {
    if (!kept_) return;
    exchange.outcome = *kept_;
    exchange.remote = remote_;
  }

 private:
  std::optional<NetFailure> kept_;
  std::optional<IpAddress> remote_;
};

void fail_blocked(Flight& flight, const RefusedDestination& refused) {
  if (refused.reason == BlockedReason::unknown_own)
    return flight.fail(NetError::local_failure, std::string(describe(refused.reason)));
  flight.exchange.outcome =
      NetFailure{NetError::blocked, describe(refused, Audience::operators), refused.reason};
}

bool is_unfinished(const IoResult& handshake) {
  return handshake.kind == IoResult::Kind::would_block || handshake.kind == IoResult::Kind::paused;
}

NetError net_error_of_lookup(LookupError error) {
  switch (error) {
    case LookupError::not_found:
      return NetError::name_not_found;
    case LookupError::failed:
      return NetError::name_lookup_failed;
    case LookupError::timed_out:
      return NetError::timeout_lookup;
    case LookupError::canceled:
      return NetError::canceled;
    case LookupError::local:
      return NetError::local_failure;
  }
  return NetError::name_lookup_failed;
}

}  // namespace

NetError net_error_of(int system_error) {
  switch (system_error) {
    case ECONNREFUSED:
      return NetError::connection_refused;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return NetError::connection_reset;
    case ETIMEDOUT:
      return NetError::timeout_connect;
    // This machine's own trouble, which says nothing about the endpoint. Only what is certain to be: such an
    // attempt does not count, so a delivery would never end.
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EAGAIN:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return NetError::local_failure;
    default:
      return NetError::unreachable;
  }
}

Task<bool> Client::State::open(Flight& flight) {
  Addresses addresses;
  const bool is_found = co_await find_addresses(flight, addresses);
  if (!is_found) co_return false;

  flight.phase = Phase::connect;
  const runtime::SteadyTime start = base::BootClock::now();
  bool is_connected = false;
  TellingFailure telling;
  for (size_t i = 0; i < addresses.size() && !is_connected; ++i) {
    const runtime::SteadyTime now = base::BootClock::now();
    const auto left = static_cast<int64_t>(addresses.size() - i);
    const auto share =
        std::max<std::chrono::nanoseconds>((flight.request.deadline - now) / left, connect_time_min);
    if (left > 1) flight.limit_step(now + share);
    is_connected = co_await connect(flight, addresses[i]);
    flight.end_step();
    if (flight.interrupted == Flight::Interrupt::canceled) break;
    if (!is_connected) telling.note(flight.exchange);
    if (!is_connected && flight.interrupted != Flight::Interrupt::none) break;
  }
  if (!is_connected && flight.interrupted != Flight::Interrupt::canceled) telling.restore(flight.exchange);
  flight.exchange.times.connect = since(start);
  if (!is_connected || !flight.request.url.is_https) co_return is_connected;

  const bool is_secured = co_await handshake(flight);
  co_return is_secured;
}

// The addresses to try, all of them allowed.
Task<bool> Client::State::find_addresses(Flight& flight, Addresses& addresses) {
  const Url& url = flight.request.url;
  if (const auto refused = flight.profile.guard().judge(url)) {
    fail_blocked(flight, *refused);
    co_return false;
  }
  if (url.address) {
    addresses.push_back(*url.address);
  } else {
    flight.phase = Phase::lookup;
    const runtime::SteadyTime start = base::BootClock::now();
    auto found = co_await resolver.resolve(std::string(url.host()), flight.request.deadline);
    flight.exchange.times.lookup = since(start);
    if (is_closed) {
      flight.fail(NetError::canceled);
      co_return false;
    }
    if (!found.ok()) {
      flight.fail(net_error_of_lookup(found.error()));
      co_return false;
    }
    addresses = std::move(*found);
  }
  if (const auto refused = flight.profile.guard().judge(url, addresses)) {
    fail_blocked(flight, *refused);
    co_return false;
  }
  if (options.bind_address)
    std::erase_if(addresses,
                  [this](const IpAddress& address) { return address.is_v6 != options.bind_address->is_v6; });
  if (addresses.size() > addresses_tried_max) addresses.resize(addresses_tried_max);
  if (addresses.empty()) flight.fail(NetError::unreachable, "no address of the family of the bind address");
  co_return !addresses.empty();
}

Task<bool> Client::State::connect(Flight& flight, IpAddress address) {
  const Url& url = flight.request.url;
  const uint16_t port = url.port;
  flight.exchange.remote = address;
  // The very address that is dialled, whatever the caller has checked.
  if (const auto refused = flight.profile.guard().judge(url, std::span(&address, 1))) {
    fail_blocked(flight, *refused);
    co_return false;
  }
  base::reach("client.connect");
  const int descriptor = start_connect(address, port, options.bind_address);
  if (descriptor < 0) {
    fail_by_system(flight, errno, address);
    co_return false;
  }
  flight.use(std::make_unique<Connection>(poller, descriptor, address));
  flight.connection->opened_at = base::BootClock::now();
  Flight::Ready ready(flight, Connection::writable);
  co_await ready;

  const int error = flight.connection->take_connect_error();
  if (flight.connection->is_ready(Connection::writable) && error == 0) {
    ++stats.connections_opened;
    co_return true;
  }
  flight.connection.reset();
  if (error != 0)
    fail_by_system(flight, error, address);
  else if (flight.interrupted == Flight::Interrupt::canceled)
    flight.fail(NetError::canceled);
  else
    flight.fail(NetError::timeout_connect);
  co_return false;
}

Task<bool> Client::State::handshake(Flight& flight) {
  flight.phase = Phase::tls;
  const runtime::SteadyTime start = base::BootClock::now();
  const Url& url = flight.request.url;
  Connection& connection = *flight.connection;
  const TlsSession session = pool.sessions().get(flight.pool_key());
  connection.start_tls(std::make_unique<TlsStream>(static_cast<SSL_CTX*>(flight.profile.tls().native()),
                                                   connection.descriptor(), std::string(url.host()),
                                                   url.address, session));
  IoResult result = connection.handshake();
  count_read(flight, result);
  while (is_unfinished(result) && !flight.is_interrupted() && flight.wire_bytes_left > 0) {
    Flight::NextTurn next_turn(flight, turns);
    Flight::Ready ready(flight,
                        connection.tls()->wants_write() ? Connection::writable : Connection::readable);
    if (result.kind == IoResult::Kind::paused)
      co_await next_turn;
    else
      co_await ready;
    if (flight.interrupted != Flight::Interrupt::none) break;
    result = connection.handshake();
    count_read(flight, result);
  }
  flight.exchange.times.tls = since(start);
  if (result.kind == IoResult::Kind::moved) {
    ++stats.tls_handshakes;
    if (connection.tls()->is_resumed()) ++stats.tls_resumed;
    co_return true;
  }
  pool.sessions().forget(flight.pool_key());
  if (is_unfinished(result) && flight.interrupted == Flight::Interrupt::none) {
    flight.fail(NetError::tls_failed, "TLS handshake failed: the endpoint sends too much");
  } else if (is_unfinished(result)) {
    flight.fail(flight.interrupted == Flight::Interrupt::canceled ? NetError::canceled
                                                                  : NetError::timeout_tls);
  } else if (result.kind == IoResult::Kind::closed) {
    flight.fail(NetError::tls_failed, "TLS handshake failed: connection closed by the endpoint");
  } else if (result.system_error != 0) {
    flight.fail(NetError::connection_reset, "connection reset in the TLS handshake");
  } else {
    const TlsStream::Trouble trouble = connection.tls()->trouble();
    flight.fail(trouble.error, trouble.words);
  }
  flight.connection.reset();
  co_return false;
}

}  // namespace postrider::http
