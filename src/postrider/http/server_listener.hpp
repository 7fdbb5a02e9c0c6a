// Inside of server.hpp's Listener.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <string>
#include <unordered_map>

#include "postrider/http/server.hpp"

namespace postrider::http {

struct ListenerState {
  explicit ListenerState(Listener::Options given) : options(std::move(given)) {}
  ~ListenerState();

  const Listener::Options options;
  int fd = -1;
  boost::asio::ip::tcp::endpoint endpoint;
  std::atomic<size_t> connections{0};
  std::atomic<size_t> body_bytes{0};

  // One more connection from this address, if it may have one. Any thread.
  bool take(const std::string& address);
  void release(const std::string& address);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, size_t> by_address_;  // those with connections
};

}  // namespace postrider::http
