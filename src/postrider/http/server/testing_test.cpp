#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "postrider/base/check.hpp"
#include "postrider/http/request_grammar.hpp"
#include "postrider/http/server/testing.hpp"

namespace postrider::http {

TestServer::TestServer(Handler& handler, ServerOptions options, Listener::Options listening)
    : listener_([&] {
        listening.address = "127.0.0.1:0";
        return std::move(listening);
      }()) {
  server_ = std::make_unique<Server>(loop_, listener_, handler, ServerMetrics{}, std::move(options));
  thread_ = std::thread([this] { loop_.run(); });
  on_loop([](Server& server) { server.start(); });
}

TestServer::~TestServer() {
  if (!is_drain_begun_) begin_drain(std::chrono::milliseconds(0));
  wait_until_drained();
}

void TestServer::on_loop(base::UniqueFunction<void(Server&)> job) {
  std::promise<void> done;
  loop_.post([&] {
    job(*server_);
    done.set_value();
  });
  done.get_future().wait();
}

runtime::Task<void> TestServer::drain(std::chrono::milliseconds patience) {
  const auto deadline = base::BootClock::now() + patience;
  co_await server_->drain(deadline);
  server_.reset();
  loop_.stop();
}

void TestServer::begin_drain(std::chrono::milliseconds patience) {
  is_drain_begun_ = true;
  on_loop([this, patience](Server&) { group_.spawn(drain(patience)); });
}

void TestServer::wait_until_drained() {
  if (thread_.joinable()) thread_.join();
}

std::optional<std::string> TestResponse::header(std::string_view name) const {
  for (size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size();) {
    const size_t begin = at + 2;
    at = head.find("\r\n", begin);
    const std::string_view line = std::string_view(head).substr(begin, at - begin);
    const size_t colon = line.find(": ");
    if (colon != std::string_view::npos && equals_ignoring_case(line.substr(0, colon), name))
      return std::string(line.substr(colon + 2));
  }
  return std::nullopt;
}

TestClient::TestClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const timeval patience{20, 0};  // only so that a broken server fails the test instead of hanging it
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

TestClient::~TestClient() {
  ::close(fd_);
}

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void TestClient::send_eof() {
  ::shutdown(fd_, SHUT_WR);
}

bool TestClient::fill() {
  char buffer[16384];
  const ssize_t received = ::recv(fd_, buffer, sizeof buffer, 0);
  if (received <= 0) return false;
  in_.append(buffer, static_cast<size_t>(received));
  return true;
}

std::optional<TestResponse> TestClient::receive(bool is_head) {
  size_t head_end;
  while ((head_end = in_.find("\r\n\r\n")) == std::string::npos)
    if (!fill()) return std::nullopt;
  TestResponse answer;
  answer.head = in_.substr(0, head_end + 2);
  answer.status = std::stoi(answer.head.substr(9, 3));
  const auto length = answer.header("content-length");
  const size_t body_bytes = length && !is_head ? std::stoul(*length) : 0;
  while (in_.size() < head_end + 4 + body_bytes)
    if (!fill()) return std::nullopt;
  answer.body = in_.substr(head_end + 4, body_bytes);
  in_.erase(0, head_end + 4 + body_bytes);
  return answer;
}

std::string TestClient::receive_until_closed() {
  while (fill()) {
  }
  return std::move(in_);
}

bool TestClient::is_closed() {
  return in_.empty() && !fill();
}

}  // namespace postrider::http
