#include "postrider/http/client/connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace postrider::http {

using Kind = IoResult::Kind;

Connection::Connection(Poller& poller, int descriptor, const IpAddress& remote)
    : poller_(poller),
      descriptor_(descriptor),
      remote_(remote),
      token_(poller.add(descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this)) {}

Connection::~Connection() {
  tls_.reset();
  poller_.remove(token_, descriptor_);
  close(descriptor_);
}

void Connection::on_events(uint32_t epoll_events) {
  ready_ |= epoll_events & (kReadable | kWritable);
  if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) end();
  if (user_ != nullptr) user_->on_connection_ready(*this);
}

void Connection::end() {
  has_ended_ = true;
  ready_ |= kReadable | kWritable;
}

int Connection::take_connect_error() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

IoResult Connection::handshake() {
  const IoResult result = tls_->handshake();
  if (result.kind == Kind::would_block) would_block(tls_->wants_write() ? kWritable : kReadable);
  return result;
}

IoResult Connection::read(char* to, size_t bytes_max) {
  if (tls_) {
    const IoResult result = tls_->read(to, bytes_max);
    if (result.kind == Kind::would_block) would_block(kReadable);
    return result;
  }
  const auto received = recv(descriptor_, to, bytes_max, 0);
  if (received == 0) return {.kind = Kind::closed};
  if (received > 0) {
    // Drained. More data triggers a new edge, but a close that was seen is not reported again.
    if (static_cast<size_t>(received) < bytes_max && !has_ended_) would_block(kReadable);
    return {.kind = Kind::moved,
            .bytes = static_cast<size_t>(received),
            .wire_bytes = static_cast<size_t>(received)};
  }
  if (errno != EAGAIN && errno != EINTR) return {.kind = Kind::failed, .system_error = errno};
  if (errno == EAGAIN) would_block(kReadable);
  return {.kind = Kind::would_block};
}

IoResult Connection::write(std::string_view bytes) {
  const IoResult result = tls_ ? tls_->write(bytes) : write_plain(bytes);
  if (result.kind == Kind::would_block) would_block(kWritable);
  // Data that the peer sent before it closed can still be read. A write may see the close before the poller
  // reports it.
  if (result.kind == Kind::failed || result.kind == Kind::closed) end();
  return result;
}

IoResult Connection::write_plain(std::string_view bytes) const {
  const auto sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return {.kind = Kind::moved, .bytes = static_cast<size_t>(sent)};
  if (errno == EINTR) return {.kind = Kind::moved};  // none of them: the caller tries again
  if (errno == EAGAIN) return {.kind = Kind::would_block};
  return {.kind = Kind::failed, .system_error = errno};
}

bool Connection::is_still_quiet() {
  char byte = 0;
  const auto received = recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (received > 0) ready_ |= kReadable;
  return is_quiet();
}

bool Connection::is_quiet() {
  if (has_ended_) return false;
  if (!tls_) return !is_ready(kReadable);
  if (!is_ready(kReadable)) return true;
  if (!tls_->is_quiet()) return false;
  would_block(kReadable);
  return true;
}

}  // namespace postrider::http
