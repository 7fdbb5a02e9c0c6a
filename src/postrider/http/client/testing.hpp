// For the client's tests only: servers on loopback that misbehave as scripted, and a client for them.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "postrider/http/client/client.hpp"

namespace postrider::http {

using namespace std::chrono_literals;

// Blocking I/O of a script on one accepted connection. All waits end when the server is destroyed.
class Peer {
 public:
  Peer(int descriptor, int stop_descriptor, int connection_number)
      : number(connection_number), descriptor_(descriptor), stop_(stop_descriptor) {}

  // One request, head and body by its content-length; "" when the client closed.
  std::string read_request() {
    while (true) {
      const size_t end = buffer_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t at = buffer_.find("content-length: ");
        const size_t total = end + 4 + (at < end ? std::stoul(buffer_.substr(at + 16, 20)) : 0);
        if (buffer_.size() >= total) {
          const std::string request = buffer_.substr(0, total);
          buffer_.erase(0, total);
          return request;
        }
      }
      if (!read_more()) return "";
    }
  }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      if (!wait(POLLOUT)) return false;
      const auto sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) continue;
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void hang() const {  // without reading
    pollfd waits[] = {{stop_, POLLIN, 0}};
    poll(waits, 1, -1);
  }
  void wait_until_closed() {
    while (read_more()) buffer_.clear();
  }
  void wait_until_received() const {  // by the client's system; or until the client has reset
    int unacknowledged = 1;
    pollfd state = {descriptor_, 0, 0};
    while (ioctl(descriptor_, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0 &&
           poll(&state, 1, 1) == 0)
      continue;
  }
  void reset() const {  // the coming close sends RST
    const linger now{1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  int descriptor() const { return descriptor_; }
  const int number;  // of the connection, from 0

 private:
  bool wait(short events) const {
    pollfd waits[] = {{descriptor_, events, 0}, {stop_, POLLIN, 0}};
    poll(waits, 2, -1);
    return (waits[1].revents & POLLIN) == 0;
  }
  bool read_more() {
    char bytes[4096];
    if (!wait(POLLIN)) return false;
    const auto received = recv(descriptor_, bytes, sizeof bytes, 0);
    if (received <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(received));
    return true;
  }

  int descriptor_;
  int stop_;
  std::string buffer_;
};

// Runs the script for every connection, each in a thread of its own.
class ScriptedServer {
 public:
  using Script = std::function<void(Peer&)>;
  explicit ScriptedServer(Script script, const char* address = "127.0.0.1") : script_(std::move(script)) {
    const bool is_v6 = std::string_view(address).find(':') != std::string_view::npos;
    listener_ = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    sockaddr_storage name{};
    socklen_t size = 0;
    if (is_v6) {
      auto* in = reinterpret_cast<sockaddr_in6*>(&name);
      in->sin6_family = AF_INET6;
      inet_pton(AF_INET6, address, &in->sin6_addr);
      size = sizeof *in;
    } else {
      auto* in = reinterpret_cast<sockaddr_in*>(&name);
      in->sin_family = AF_INET;
      inet_pton(AF_INET, address, &in->sin_addr);
      size = sizeof *in;
    }
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listener_, 1024), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    port_ = ntohs(reinterpret_cast<sockaddr_in*>(&name)->sin_port);
    stop_ = eventfd(0, 0);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    acceptor_.join();
    for (std::thread& thread : connections_) thread.join();
    close(listener_);
    close(stop_);
  }
  uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }
  std::string url(const std::string& path = "/hook", const std::string& host = "127.0.0.1",
                  const std::string& scheme = "http") const {
    return scheme + "://" + host + ":" + std::to_string(port_) + path;
  }

 private:
  void accept_all() {
    while (true) {
      pollfd waits[] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
      poll(waits, 2, -1);
      if (waits[1].revents & POLLIN) return;
      const int descriptor = accept(listener_, nullptr, nullptr);
      if (descriptor < 0) continue;
      connections_.emplace_back([this, descriptor, number = accepted_++] {
        Peer peer(descriptor, stop_, number);
        script_(peer);
        close(descriptor);
      });
    }
  }

  Script script_;
  int listener_ = -1;
  int stop_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> connections_;
};

inline GuardPolicy loopback_policy() {
  return {.allow_http = true,
          .allow_networks = {*Network::parse("127.0.0.0/8"), *Network::parse("::1")},
          .allow_ports = {{1, 65535}}};
}

// A loop, a client and what they need; fetch() runs the loop until the exchange is over.
class ClientTest : public testing::Test {
 protected:
  ClientTest() { make_client({}); }
  ~ClientTest() override {
    if (client_) client_->close();
  }

  void make_client(ClientOptions options, TlsOptions tls = {.trust_system_store = false}) {
    client_.reset();
    tls_ = std::make_unique<TlsContext>(tls);
    client_ = std::make_unique<Client>(loop_, *guard_, *tls_, std::move(options));
  }
  void use_policy(GuardPolicy policy) {
    client_.reset();
    guard_ = std::make_unique<AddressGuard>(std::move(policy));
    make_client({});
  }

  Exchange fetch(const std::string& url_text, std::chrono::milliseconds timeout = 20s,
                 std::string body = "{}") {
    const auto url = parse_url(url_text);
    EXPECT_TRUE(url.ok()) << url_text;
    Exchange exchange;
    runtime::TaskGroup group;
    group.spawn(fetch_one(*url, timeout, body, exchange));
    run_until_done(group);
    return exchange;
  }
  runtime::Task<void> fetch_one(const Url& url, std::chrono::milliseconds timeout, const std::string& body,
                                Exchange& exchange) {
    OutboundRequest request{
        .url = url, .headers = headers_, .body = body, .deadline = base::BootClock::now() + timeout};
    exchange = co_await client_->send(request);
  }
  void run_until_done(runtime::TaskGroup& group) {
    runtime::TaskGroup joiners;
    joiners.spawn(stop_when_done(group));
    if (group.running() > 0) loop_.run();
  }
  runtime::Task<void> stop_when_done(runtime::TaskGroup& group) {
    co_await group.join();
    loop_.stop();
  }

  static std::string error_of(const Exchange& exchange) {
    if (exchange.failure() == nullptr) return "status " + std::to_string(exchange.answer()->status);
    return std::string(to_string(exchange.failure()->error));
  }
  static int status_of(const Exchange& exchange) {
    if (exchange.answer() != nullptr) return exchange.answer()->status;
    ADD_FAILURE() << exchange.failure()->detail;
    return 0;
  }

  runtime::Loop loop_;
  std::unique_ptr<AddressGuard> guard_ = std::make_unique<AddressGuard>(loopback_policy());
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<Client> client_;
  std::string headers_ = "content-type: application/json\r\n";
};

inline constexpr std::string_view kOkResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Sends the same bytes in response to every request on a connection until the client closes.
inline ScriptedServer::Script always(std::string answer) {
  return [answer = std::move(answer)](Peer& peer) {
    while (!peer.read_request().empty())
      if (!peer.write(answer)) return;
  };
}
// Responds once and closes.
inline ScriptedServer::Script once(std::string answer) {
  return [answer = std::move(answer)](Peer& peer) {
    if (!peer.read_request().empty()) peer.write(answer);
  };
}

}  // namespace postrider::http
