// Inside of server.hpp's Listener.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>

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
};

}  // namespace postrider::http
