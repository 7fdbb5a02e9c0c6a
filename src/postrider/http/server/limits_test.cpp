// Slow clients, too many clients, and shutdown.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>

#include "postrider/http/server/testing.hpp"

namespace postrider::http {
namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /now HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kWait = "GET /wait HTTP/1.1\r\nHost: h\r\n\r\n";

// "/wait" responds when the test releases it, "/stream" sends pieces until the server drains; all other paths
// respond at once.
class Held : public Handler {
 public:
  Task<Response> handle(Request& request) override {
    if (request.path == "/stream") {
      Response response = Response::text(200, "");
      response.stream = [this](BodyStream& body) { return pieces(body); };
      co_return response;
    }
    if (request.path == "/wait") {
      runtime::OneShot<bool>& release = waiting_.emplace_back();
      ++waiters_;
      waiters_.notify_all();
      co_await release;
    }
    co_return Response::text(200, "done");
  }

  void wait_for_waiters(int count) {
    for (int seen = waiters_; seen < count; seen = waiters_) waiters_.wait(seen);
  }
  void release(TestServer& server) {
    server.on_loop([this](Server&) {
      for (auto& one : waiting_)
        if (!one.is_set()) one.set(true);
    });
  }
  std::promise<void> stream_ended;

 private:
  Task<void> pieces(BodyStream& body) {
    const std::string piece(10'000, 's');
    while (true) {
      const bool sent = co_await body.write(piece);
      if (!sent) break;
    }
    stream_ended.set_value();
  }

  std::deque<runtime::OneShot<bool>> waiting_;
  std::atomic<int> waiters_{0};
};

// Only the limit under test is short. A head gets more time, because the test's own thread must be scheduled
// before it can send the first byte.
ServerOptions quick_head() {
  return {.head_timeout = milliseconds(2'000)};
}

TEST(SlowClients, ThatTrickleTheirHeadGet408) {
  Held held;
  ServerOptions options = quick_head();
  options.head_bytes_max = options.fields_max = 1 << 30;  // ends only by a timeout
  TestServer server(held, options);
  TestClient client(server.port());
  // Sends one more header line each time the last one was read: a slowloris.
  client.send("GET / HTTP/1.1\r\n");
  std::atomic<bool> is_over = false;
  std::thread trickle([&] {
    while (!is_over && client.send("A: b\r\n")) std::this_thread::yield();
  });
  const auto answer = client.receive();
  is_over = true;
  trickle.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
}

TEST(SlowClients, ThatStopInTheirHeadGet408) {
  Held held;
  TestServer server(held, quick_head());
  TestClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHo");
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
  EXPECT_TRUE(client.is_closed());
}

TEST(SlowClients, ThatStopInTheirBodyGet408) {
  Held held;
  TestServer server(held, {.body_timeout = milliseconds(40), .body_bytes_per_second_min = 1 << 20});
  for (const char* framing :
       {"Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12"}) {
    TestClient client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(framing));
    const auto answer = client.receive();
    ASSERT_TRUE(answer) << framing;
    EXPECT_EQ(answer->status, 408) << framing;
  }
}

TEST(SlowClients, ThatSayNothingAreClosedWithoutAWord) {
  Held held;
  ServerOptions options = quick_head();
  options.idle_timeout = milliseconds(40);
  TestServer server(held, options);
  TestClient fresh(server.port()), used(server.port());
  used.send(kGet);
  const auto answer = used.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(used.is_closed());
  EXPECT_TRUE(fresh.is_closed());
}

TEST(SlowClients, ThatDoNotReadAreCut) {
  Held held;
  TestServer server(held, {.write_timeout = milliseconds(40)});
  TestClient client(server.port());
  client.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
  held.stream_ended.get_future().wait();
}

TEST(Streams, EndWhenTheClientGoes) {
  Held held;
  TestServer server(held);
  {
    TestClient client(server.port());
    client.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(client.receive()->header("transfer-encoding"), "chunked");
  }
  held.stream_ended.get_future().wait();
}

TEST(Streams, EndWhenTheServerDrains) {
  Held held;
  TestServer server(held);
  TestClient client(server.port());
  client.send("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 200);
  server.begin_drain(std::chrono::minutes(1));
  EXPECT_TRUE(client.receive_until_closed().ends_with("\r\n0\r\n\r\n"));
  server.wait_until_drained();
}

TEST(Connections, OverTheLimitGet503AndRoomIsReused) {
  Held held;
  TestServer server(held, {.linger_timeout = milliseconds(10)}, {.connections_max = 1024});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 1024; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(kGet);
    ASSERT_EQ(clients.back()->receive()->status, 200) << i;
  }
  EXPECT_EQ(server.listener().connections(), 1024u);
  {
    TestClient one_too_many(server.port());
    const auto answer = one_too_many.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(answer->header("retry-after"), "1");
    EXPECT_TRUE(one_too_many.is_closed());
  }
  // Open connections are served as before, and closing one makes room.
  clients[500]->send(kGet);
  EXPECT_EQ(clients[500]->receive()->status, 200);
  clients[501]->send_eof();
  EXPECT_TRUE(clients[501]->is_closed());
  TestClient next(server.port());
  next.send(kGet);
  EXPECT_EQ(next.receive()->status, 200);
}

TEST(Pipelining, AnAnswerDoesNotWaitForTheNextHandler) {
  Held held;
  TestServer server(held);
  TestClient client(server.port());
  client.send(std::string(kGet) + std::string(kWait) + std::string(kGet));
  EXPECT_EQ(client.receive()->status, 200);  // while the second is held
  held.wait_for_waiters(1);
  held.release(server);
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(client.receive()->status, 200);
}

TEST(Drain, FinishesWhatIsInProgressAndClosesTheRest) {
  Held held;
  TestServer server(held);
  TestClient idle(server.port()), busy(server.port());
  idle.send(kGet);
  EXPECT_EQ(idle.receive()->status, 200);
  busy.send(kWait);
  held.wait_for_waiters(1);
  server.begin_drain(std::chrono::minutes(1));
  EXPECT_TRUE(idle.is_closed());
  held.release(server);
  const auto answer = busy.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->header("connection"), "close");
  EXPECT_TRUE(busy.is_closed());
  server.wait_until_drained();
  EXPECT_EQ(server.listener().connections(), 0u);
}

TEST(Drain, CutsWhatIsLeftAtItsDeadline) {
  Held held;
  TestServer server(held);
  TestClient half_sent(server.port());
  half_sent.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(half_sent.receive()->status, 100);
  server.begin_drain(milliseconds(20));
  EXPECT_TRUE(half_sent.is_closed());
  server.wait_until_drained();
}

TEST(Drain, OfManyServersStartedAndStoppedLeavesNothing) {
  for (int i = 0; i < 50; ++i) {
    Held held;
    TestServer server(held);
    TestClient client(server.port());
    if (i % 2 == 0) client.send(kGet);
    if (i % 3 == 0) client.send("GET / HT");
  }
}

TEST(Listeners, OnATakenPortFail) {
  const Listener first({.address = "127.0.0.1:0"});
  EXPECT_THROW(Listener({.address = first.address()}), std::system_error);
  EXPECT_THROW(Listener({.address = "127.0.0.1"}), std::invalid_argument);
  EXPECT_THROW(Listener({.address = "example.com:80"}), std::invalid_argument);
}

TEST(Listeners, ServeSeveralLoops) {
  Held held;
  const Listener listener({.address = "127.0.0.1:0"});
  const telemetry::Metrics all;
  ServerMetrics metrics;
  metrics.requests[1] = all.counter("requests", "");
  runtime::Loop loops[2];
  std::unique_ptr<Server> servers[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i) {
    servers[i] = std::make_unique<Server>(loops[i], listener, held, metrics);
    loops[i].post([&, i] { servers[i]->start(); });
    threads[i] = std::thread([&, i] { loops[i].run(); });
  }
  for (int i = 0; i < 100; ++i) {
    TestClient client(listener.port());
    client.send(kGet);
    ASSERT_EQ(client.receive()->status, 200);
  }
  EXPECT_EQ(metrics.requests[1].value(), 100);
  struct Stop {
    static Task<void> run(runtime::Loop& loop, Server& server) {
      const auto deadline = base::BootClock::now();
      co_await server.drain(deadline);
      loop.stop();
    }
  };
  runtime::TaskGroup groups[2];
  for (int i = 0; i < 2; ++i) loops[i].post([&, i] { groups[i].spawn(Stop::run(loops[i], *servers[i])); });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace postrider::http
