#include "client_connection.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "http_message.hpp"

namespace bench {

ClientConnection::ClientConnection(Address address, int epoll, std::uint64_t tag)
    : address_(address), epoll_(epoll), tag_(tag) {
  open();
}

void ClientConnection::open() {
  socket_ = connect_to(address_);
  watch(epoll_, socket_.get(), EPOLLIN, tag_);
}

void ClientConnection::send(std::string_view request) {
  sent_ns_ = now_ns();
  is_busy_ = true;
  unsent_.assign(request);
  if (!flush()) watch(epoll_, socket_.get(), EPOLLIN | EPOLLOUT, tag_);
}

// A failed write is not reported here: the read that follows sees the closed connection.
bool ClientConnection::flush() {
  if (unsent_.empty()) return true;
  const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  return unsent_.empty();
}

std::optional<ClientConnection::Response> ClientConnection::read() {
  input_.erase(0, consumed_);
  consumed_ = 0;
  if (!unsent_.empty() && flush()) watch(epoll_, socket_.get(), EPOLLIN, tag_);

  char chunk[64 * 1024];
  const ssize_t got = recv(socket_.get(), chunk, sizeof chunk, 0);
  if (got == 0 || (got < 0 && errno != EAGAIN)) return fail();
  if (got > 0) input_.append(chunk, static_cast<std::size_t>(got));
  const auto message = first_message(input_);
  if (!message || !is_busy_) return std::nullopt;
  is_busy_ = false;
  consumed_ = message->bytes;
  return Response{.status = status_of(*message), .body = message->body};
}

ClientConnection::Response ClientConnection::fail() {
  is_busy_ = false;
  input_.clear();
  unsent_.clear();
  open();
  return {.status = 0, .body = {}};
}

}  // namespace bench
