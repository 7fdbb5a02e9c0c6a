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
#include "postrider/http/client/blocked_destination.hpp"
#include "postrider/http/client/state.hpp"

namespace postrider::http {

using runtime::Task;

namespace {

constexpr size_t kAddressesTriedMax = 4;
constexpr std::chrono::milliseconds kConnectTimeMin{1'000};  // for one of several addresses

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

// A socket that is connecting to the address, or -1 with errno set.
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

// Without IPv6 on this network, an IPv6 address can never be reached, so this is permanent. For an IPv4
// address the same error means that no port is left.
NetError net_error_at(const IpAddress& address, int system_error) {
  if (system_error == EADDRNOTAVAIL && address.is_v6) return NetError::unreachable;
  return net_error_of(system_error);
}

void fail_by_system(ExchangeInProgress& current, int system_error, const IpAddress& address) {
  const NetError error = net_error_at(address, system_error);
  if (error == NetError::local_failure)
    current.fail(error, std::string(describe(error)) + ": " + std::generic_category().message(system_error));
  else
    current.fail(error);
}

// If several addresses fail, report the first failure that says something about the endpoint: an unreachable
// IPv6 address must not hide a connection refused over IPv4.
class EndpointFailure {
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

void fail_blocked(ExchangeInProgress& current, const BlockedDestination& blocked) {
  if (blocked.reason == BlockedReason::unknown_own)
    return current.fail(NetError::local_failure, std::string(describe(blocked.reason)));
  current.exchange.outcome =
      NetFailure{NetError::blocked, describe(blocked, Audience::operators), blocked.reason};
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
    // An error of this machine, which says nothing about the endpoint. Only errors that are certain to be
    // local belong here: such an attempt does not count, so the delivery would be retried forever.
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

Task<bool> Client::State::open(ExchangeInProgress& current) {
  Addresses addresses;
  const bool is_found = co_await find_addresses(current, addresses);
  if (!is_found) co_return false;

  current.phase = Phase::connect;
  const runtime::SteadyTime start = base::BootClock::now();
  bool is_connected = false;
  EndpointFailure endpoint_failure;
  for (size_t i = 0; i < addresses.size() && !is_connected; ++i) {
    const runtime::SteadyTime now = base::BootClock::now();
    const auto left = static_cast<int64_t>(addresses.size() - i);
    const auto share =
        std::max<std::chrono::nanoseconds>((current.request.deadline - now) / left, kConnectTimeMin);
    if (left > 1) current.limit_step(now + share);
    is_connected = co_await connect(current, addresses[i]);
    current.end_step();
    if (current.interrupted == ExchangeInProgress::Interrupt::canceled) break;
    if (!is_connected) endpoint_failure.note(current.exchange);
    if (!is_connected && current.interrupted != ExchangeInProgress::Interrupt::none) break;
  }
  if (!is_connected && current.interrupted != ExchangeInProgress::Interrupt::canceled)
    endpoint_failure.restore(current.exchange);
  current.exchange.times.connect = since(start);
  if (!is_connected || !current.request.url.is_https) co_return is_connected;

  const bool is_secured = co_await handshake(current);
  co_return is_secured;
}

// The addresses to try, all of them allowed.
Task<bool> Client::State::find_addresses(ExchangeInProgress& current, Addresses& addresses) {
  const Url& url = current.request.url;
  if (const auto blocked = current.profile.guard().inspect(url)) {
    fail_blocked(current, *blocked);
    co_return false;
  }
  if (url.address) {
    addresses.push_back(*url.address);
  } else {
    current.phase = Phase::lookup;
    const runtime::SteadyTime start = base::BootClock::now();
    auto found = co_await resolver.resolve(std::string(url.host()), current.request.deadline);
    current.exchange.times.lookup = since(start);
    if (is_closed) {
      current.fail(NetError::canceled);
      co_return false;
    }
    if (!found.ok()) {
      current.fail(net_error_of_lookup(found.error()));
      co_return false;
    }
    addresses = std::move(*found);
  }
  if (const auto blocked = current.profile.guard().inspect(url, addresses)) {
    fail_blocked(current, *blocked);
    co_return false;
  }
  if (options.bind_address)
    std::erase_if(addresses,
                  [this](const IpAddress& address) { return address.is_v6 != options.bind_address->is_v6; });
  if (addresses.size() > kAddressesTriedMax) addresses.resize(kAddressesTriedMax);
  if (addresses.empty())
    current.fail(NetError::unreachable, "the name has no address of the bind address's family");
  co_return !addresses.empty();
}

Task<bool> Client::State::connect(ExchangeInProgress& current, IpAddress address) {
  const Url& url = current.request.url;
  const uint16_t port = url.port;
  current.exchange.remote = address;
  // Checks the address that is dialled, regardless of what the caller has checked.
  if (const auto blocked = current.profile.guard().inspect(url, std::span(&address, 1))) {
    fail_blocked(current, *blocked);
    co_return false;
  }
  base::reach("client.connect");
  const int descriptor = start_connect(address, port, options.bind_address);
  if (descriptor < 0) {
    fail_by_system(current, errno, address);
    co_return false;
  }
  current.use(std::make_unique<Connection>(poller, descriptor, address));
  current.connection->opened_at = base::BootClock::now();
  ExchangeInProgress::Ready ready(current, Connection::kWritable);
  co_await ready;

  const int error = current.connection->take_connect_error();
  if (current.connection->is_ready(Connection::kWritable) && error == 0) {
    ++stats.connections_opened;
    co_return true;
  }
  current.connection.reset();
  if (error != 0)
    fail_by_system(current, error, address);
  else if (current.interrupted == ExchangeInProgress::Interrupt::canceled)
    current.fail(NetError::canceled);
  else
    current.fail(NetError::timeout_connect);
  co_return false;
}

Task<bool> Client::State::handshake(ExchangeInProgress& current) {
  current.phase = Phase::tls;
  const runtime::SteadyTime start = base::BootClock::now();
  const Url& url = current.request.url;
  Connection& connection = *current.connection;
  const TlsSession session = pool.sessions().get(current.pool_key());
  connection.start_tls(std::make_unique<TlsStream>(static_cast<SSL_CTX*>(current.profile.tls().native()),
                                                   connection.descriptor(), std::string(url.host()),
                                                   url.address, session));
  IoResult result = connection.handshake();
  count_read(current, result);
  while (is_unfinished(result) && !current.is_interrupted() && current.wire_bytes_left > 0) {
    ExchangeInProgress::NextTurn next_turn(current, turns);
    ExchangeInProgress::Ready ready(
        current, connection.tls()->wants_write() ? Connection::kWritable : Connection::kReadable);
    if (result.kind == IoResult::Kind::paused)
      co_await next_turn;
    else
      co_await ready;
    if (current.interrupted != ExchangeInProgress::Interrupt::none) break;
    result = connection.handshake();
    count_read(current, result);
  }
  current.exchange.times.tls = since(start);
  if (result.kind == IoResult::Kind::moved) {
    ++stats.tls_handshakes;
    if (connection.tls()->is_resumed()) ++stats.tls_resumed;
    co_return true;
  }
  pool.sessions().forget(current.pool_key());
  if (is_unfinished(result) && current.interrupted == ExchangeInProgress::Interrupt::none) {
    current.fail(NetError::tls_failed, "TLS handshake failed: the endpoint sends too much");
  } else if (is_unfinished(result)) {
    current.fail(current.interrupted == ExchangeInProgress::Interrupt::canceled ? NetError::canceled
                                                                                : NetError::timeout_tls);
  } else if (result.kind == IoResult::Kind::closed) {
    current.fail(NetError::tls_failed, "TLS handshake failed: connection closed by the endpoint");
  } else if (result.system_error != 0) {
    current.fail(NetError::connection_reset, "connection reset in the TLS handshake");
  } else {
    const TlsStream::Failure failure = connection.tls()->failure();
    current.fail(failure.error, failure.detail);
  }
  current.connection.reset();
  co_return false;
}

}  // namespace postrider::http
