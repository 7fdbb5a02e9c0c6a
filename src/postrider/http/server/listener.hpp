// Internals of the Listener in server.hpp.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <string>
#include <unordered_map>

#include "postrider/http/server/body_budget.hpp"
#include "postrider/http/server/server.hpp"

namespace postrider::http {

// The address that counts as one client: an IPv4 address, or the /64 of an IPv6 address, because one client
// usually has the whole /64.
std::string client_of(const std::string& address);

struct ListenerState {
  explicit ListenerState(Listener::Options given)
      : options(std::move(given)),
        bodies(options.body_bytes_max),
        unauthenticated_bodies(options.unauthenticated_body_bytes_max) {}
  ~ListenerState();

  const Listener::Options options;
  int fd = -1;
  boost::asio::ip::tcp::endpoint endpoint;
  std::atomic<size_t> connections{0};
  BodyBudget bodies, unauthenticated_bodies;

  // Counts one more connection of this client, if it is allowed one. Any thread.
  bool take(const std::string& client);
  void release(const std::string& client);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, size_t> by_client_;  // those with connections
};

}  // namespace postrider::http
