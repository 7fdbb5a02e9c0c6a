#include "postrider/http/server/listener.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <system_error>

#include "postrider/base/ip_address.hpp"

namespace postrider::http {

namespace ip = boost::asio::ip;

namespace {

ip::tcp::endpoint parse_endpoint(const std::string& address) {
  const auto bad = [&] {
    return std::invalid_argument("not a listening address (host:port): \"" + address + "\"");
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) throw bad();
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  if (host.empty() || host == "*") host = "::";
  uint16_t port = 0;
  const char* end = address.data() + address.size();
  const auto [parsed, port_error] = std::from_chars(address.data() + colon + 1, end, port);
  if (port_error != std::errc() || parsed != end) throw bad();
  boost::system::error_code error;
  const ip::address host_address = ip::make_address(host, error);
  if (error) throw bad();
  return {host_address, port};
}

[[noreturn]] void fail(const std::string& address) {
  throw std::system_error(errno, std::generic_category(), "cannot listen on " + address);
}

}  // namespace

std::string client_of(const std::string& address) {
  auto parsed = base::IpAddress::parse(address);
  if (!parsed || !parsed->is_v6) return address;
  std::fill(parsed->bytes.begin() + 8, parsed->bytes.end(), uint8_t{0});
  return parsed->to_string() + "/64";
}

ListenerState::~ListenerState() {
  if (fd >= 0) ::close(fd);
}

bool ListenerState::take(const std::string& client) {
  const std::lock_guard lock(mutex_);
  size_t& count = by_client_[client];
  if (count >= options.connections_per_address_max) return false;
  ++count;
  return true;
}

void ListenerState::release(const std::string& client) {
  const std::lock_guard lock(mutex_);
  const auto found = by_client_.find(client);
  if (--found->second == 0) by_client_.erase(found);
}

// Not SO_REUSEPORT: a second process on the same port must fail to start instead of silently sharing the
// traffic. Each loop accepts from its own duplicate of this one socket.
Listener::Listener(Options options) : state_(std::make_shared<ListenerState>(std::move(options))) {
  const std::string& address = state_->options.address;
  ip::tcp::endpoint& endpoint = state_->endpoint;
  endpoint = parse_endpoint(address);
  state_->fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (state_->fd < 0 || ::setsockopt(state_->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(state_->fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0)
    fail(address);
  socklen_t length = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(state_->fd, endpoint.data(), &length) != 0) fail(address);
  endpoint.resize(length);
  if (state_->options.is_open_at_once) open();
}

void Listener::open() {
  if (::listen(state_->fd, SOMAXCONN) != 0) fail(state_->options.address);
}

Listener::~Listener() = default;

uint16_t Listener::port() const {
  return state_->endpoint.port();
}

std::string Listener::address() const {
  const auto& endpoint = state_->endpoint;
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

size_t Listener::connections() const {
  return state_->connections;
}

}  // namespace postrider::http
