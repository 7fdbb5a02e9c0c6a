// One keep-alive HTTP/1.1 connection of a benchmark client, with at most one request unanswered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net.hpp"

namespace bench {

class ClientConnection {
 public:
  struct Response {
    int status;             // 0: the connection broke; it has been opened anew
    std::string_view body;  // valid until the next call
  };

  // Connects at once; the events of this connection in `epoll` carry `tag`.
  ClientConnection(Address address, int epoll, std::uint64_t tag);

  void send(std::string_view request);
  std::optional<Response>
  read();  // call when the socket has an event; no value until the response is complete

  bool is_busy() const { return is_busy_; }
  std::uint64_t sent_ns() const { return sent_ns_; }

 private:
  void open();
  bool flush();
  Response fail();

  Address address_;
  int epoll_;
  std::uint64_t tag_;
  Descriptor socket_;
  std::string unsent_;
  std::string input_;
  std::size_t consumed_ = 0;
  bool is_busy_ = false;
  std::uint64_t sent_ns_ = 0;
};

}  // namespace bench
