// For tests: a server on its own thread, and a client that sends exactly the given bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "postrider/http/server/server.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::http {

class TestServer {
 public:
  explicit TestServer(Handler& handler, ServerOptions options = {}, Listener::Options listening = {});
  ~TestServer();

  uint16_t port() const { return listener_.port(); }
  Listener& listener() { return listener_; }
  // Runs on the loop's thread; returns when it has run.
  void on_loop(base::UniqueFunction<void(Server&)> job);
  // Begins to drain; wait_until_drained() joins it.
  void begin_drain(std::chrono::milliseconds patience);
  void wait_until_drained();

 private:
  runtime::Task<void> drain(std::chrono::milliseconds patience);

  runtime::Loop loop_;
  Listener listener_;
  std::unique_ptr<Server> server_;
  runtime::TaskGroup group_;
  std::thread thread_;
  bool is_drain_begun_ = false;
};

struct TestResponse {
  int status = 0;
  std::string head;
  std::string body;
  std::optional<std::string> header(std::string_view name) const;
};

class TestClient {
 public:
  explicit TestClient(uint16_t port);
  ~TestClient();
  TestClient(const TestClient&) = delete;

  bool send(std::string_view bytes);  // false: the server has closed
  void send_eof();
  // One response; nothing if the connection ends before it is complete. `is_head`: it has no body.
  std::optional<TestResponse> receive(bool is_head = false);
  std::string receive_until_closed();  // everything until the server closes
  bool is_closed();                    // waits until the server closes or sends something

 private:
  bool fill();
  int fd_;
  std::string in_;
};

}  // namespace postrider::http
