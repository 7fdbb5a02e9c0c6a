// Large bodies: which callers may send them, how long they may take, and whose memory they use.
#include <gtest/gtest.h>

#include <atomic>

#include "postrider/http/server/problem.hpp"
#include "postrider/http/server/testing.hpp"

namespace postrider::http {
namespace {

using runtime::Task;
using std::chrono::milliseconds;

constexpr size_t kLarge = 1 << 20;

// "/open" is for everyone; elsewhere a large body needs an Authorization field, which names the caller.
class Gate : public Handler {
 public:
  Task<Admission> admit(Request& head) override {
    ++asked;
    Admission admission;
    admission.body_bytes_max = 16 << 20;
    const auto key = head.header("authorization");
    if (key) admission.owner = *key;
    const Problem unknown{.status = 401, .detail = "Who are you?"};
    if (!key && head.path != "/open") admission.rejection = problem(head, unknown);
    co_return admission;
  }
  Task<Response> handle(Request& request) override {
    request.is_authenticated = request.header("authorization").has_value();
    co_return Response::text(200, std::to_string(request.body.size()));
  }
  std::atomic<int> asked = 0;
};

std::string head(std::string_view path, size_t length, std::string_view key = "") {
  std::string text = "POST " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n";
  if (!key.empty()) text += "Authorization: " + std::string(key) + "\r\n";
  return text + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

std::string upload(std::string_view path, size_t length, std::string_view key = "") {
  return head(path, length, key) + std::string(length, 'a');
}

// All but the last byte, which never comes.
std::unique_ptr<TestClient> stalled(TestServer& server, std::string_view path, std::string_view key = "") {
  auto client = std::make_unique<TestClient>(server.port());
  std::string request = upload(path, kLarge, key);
  request.pop_back();
  client->send(request);
  return client;
}

TEST(Uploads, ThatStallEndHoweverFastTheirFirstBytesCame) {
  Gate gate;
  // At a byte per second, what was sent would buy twelve days.
  TestServer server(gate, {.body_timeout = milliseconds(100), .body_bytes_per_second_min = 1});
  const auto client = stalled(server, "/open");
  const auto answer = client->receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);
}

TEST(Uploads, OfUnknownCallersAreRefusedByTheirHead) {
  Gate gate;
  TestServer server(gate);
  for (const std::string& request :
       {head("/batch", kLarge),
        std::string("POST /batch HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    TestClient client(server.port());
    client.send(request);  // and nothing of the body
    const auto answer = client.receive();
    ASSERT_TRUE(answer) << request;
    EXPECT_EQ(answer->status, 401) << request;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(Uploads, OfOrdinarySizeAreReadWithoutAsking) {
  Gate gate;
  TestServer server(gate);
  TestClient client(server.port());
  client.send(head("/batch", kOrdinaryBodyBytesMax));
  client.send(std::string(kOrdinaryBodyBytesMax, 'a'));
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(gate.asked, 0);
  client.send(upload("/batch", kOrdinaryBodyBytesMax + 1, "alice"));
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(gate.asked, 1);
}

TEST(Uploads, SixteenThatStallLeaveRoomForAGoodOne) {
  Gate gate;
  const std::chrono::hours never(1);
  TestServer server(gate, {.body_timeout = never},
                    {.body_bytes_max = 16 * kLarge, .unauthenticated_body_bytes_max = 8 * kLarge});
  std::vector<std::unique_ptr<TestClient>> stalled_clients;
  for (int i = 0; i < 16; ++i) stalled_clients.push_back(stalled(server, "/open"));
  // Uploads that compete for the last of the budget may all be rejected, so sixteen do not always fill it.
  // It is full once one more is rejected.
  const auto has_room = [&] {
    TestClient stranger(server.port());
    stranger.send(upload("/open", kLarge));
    const auto answer = stranger.receive();
    return answer && answer->status == 200;
  };
  while (has_room()) stalled_clients.push_back(stalled(server, "/open"));
  TestClient known(server.port());
  known.send(upload("/batch", 4 * kLarge, "alice"));
  const auto answer = known.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, std::to_string(4 * kLarge));
  // Small requests without a key are served, too.
  TestClient small(server.port());
  small.send(upload("/open", 100));
  EXPECT_EQ(small.receive()->status, 200);
}

TEST(Uploads, OfOneCallerTakeAtMostHalfOfTheBudget) {
  Gate gate;
  TestServer server(gate, {.body_timeout = std::chrono::hours(1)}, {.body_bytes_max = 8 * kLarge});
  TestClient greedy(server.port()), other(server.port());
  greedy.send(head("/batch", 5 * kLarge, "greedy") + std::string(4 * kLarge + 50'000, 'a'));
  EXPECT_EQ(greedy.receive()->status, 503);
  other.send(upload("/batch", 4 * kLarge, "other"));
  EXPECT_EQ(other.receive()->status, 200);
}

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kGetWithKey = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: alice\r\n\r\n";

int status_of(TestClient& client, std::string_view request) {
  client.send(request);
  const auto answer = client.receive();
  return answer ? answer->status : 0;
}

TEST(ConnectionsOfAnAddress, AreLimitedUntilTheyMakeAnAuthenticatedRequest) {
  Gate gate;
  TestServer server(gate, {.uncounted_networks = {}}, {.connections_per_address_max = 2});
  TestClient first(server.port()), second(server.port());
  EXPECT_EQ(status_of(first, kGet), 200);
  EXPECT_EQ(status_of(second, kGet), 200);
  {
    TestClient third(server.port());
    const auto answer = third.receive();  // without having asked
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
  }
  EXPECT_EQ(status_of(first, kGetWithKey), 200);
  TestClient fourth(server.port());
  EXPECT_EQ(status_of(fourth, kGet), 200);
  EXPECT_EQ(status_of(first, kGet), 200) << "it stays known";
}

TEST(ConnectionsOfAnAddress, AreNotCountedOnceALargeUploadIsAdmitted) {
  Gate gate;
  TestServer server(gate, {.body_timeout = std::chrono::hours(1), .uncounted_networks = {}},
                    {.connections_per_address_max = 1});
  TestClient uploading(server.port());
  uploading.send(
      "POST /batch HTTP/1.1\r\nHost: h\r\nAuthorization: alice\r\nContent-Length: 100000\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(uploading.receive()->status, 100);
  TestClient next(server.port());
  EXPECT_EQ(status_of(next, kGet), 200);
}

TEST(ConnectionsOfAnAddress, OfLoopbackAreNotCounted) {
  Gate gate;
  TestServer server(gate, {}, {.connections_per_address_max = 1});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_EQ(status_of(*clients.back(), kGet), 200);
  }
}

}  // namespace
}  // namespace postrider::http
