// Receivers that send without end. Nothing here measures time: bytes and turns of the loop are counted.
#include "postrider/http/client/read_turns.hpp"
#include "postrider/http/client/response_head.hpp"
#include "postrider/http/client/response_reader.hpp"
#include "postrider/http/client/testing.hpp"

namespace postrider::http {
namespace {

constexpr std::string_view kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// The head, then the same piece until the client closes.
ScriptedServer::Script endless(std::string piece) {
  return [piece = std::move(piece)](Peer& peer) {
    peer.read_request();
    peer.write(kChunkedHead);
    while (peer.write(piece)) continue;
  };
}

std::string repeated(std::string_view piece, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += piece;
  return all;
}

class ClientFlood : public ClientTest {
 protected:
  // A response without a limit on its body, as an export is.
  runtime::Task<void> stream(const Url& url, std::chrono::milliseconds timeout, Exchange& exchange) {
    OutboundRequest request{.url = url,
                            .deadline = base::BootClock::now() + timeout,
                            .response_body_bytes_max = SIZE_MAX,
                            .response_silence_max = 1h};
    exchange = co_await client_->send(request);
  }

  // Reads the client's counter once per turn of the loop.
  void count_turn(uint64_t seen) {
    const uint64_t now = client_->stats().bytes_received;
    turn_bytes_ = std::max(turn_bytes_, now - seen);
    if (is_counting_) loop_.post([this, now] { count_turn(now); });
  }

  uint64_t turn_bytes_ = 0;  // the most in one turn
  bool is_counting_ = true;
};

struct EndlessCase {
  const char* name;
  std::string piece;
};

class ClientEndlessFraming : public ClientTest, public testing::WithParamInterface<EndlessCase> {};

TEST_P(ClientEndlessFraming, IsGivenUpAfterABoundedNumberOfBytes) {
  ScriptedServer server(endless(GetParam().piece));
  const Exchange exchange = fetch(server.url());
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_FALSE(exchange.answer()->is_complete);
  constexpr size_t body_bytes_max = 64 * 1024;
  EXPECT_LE(client_->stats().bytes_received,
            kResponseHeadBytesMax + body_bytes_max + kChunkFramingBytesMax + ReadTurns::kReaderBytesMax);
  EXPECT_EQ(client_->stats().idle, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, ClientEndlessFraming,
    testing::Values(EndlessCase{"Extensions", "1;" + std::string(16'000, 'a') + "\r\nx\r\n"},
                    EndlessCase{"OneByteChunks", repeated("1\r\nx\r\n", 1000)},
                    EndlessCase{"LongChunkSizes", repeated("0000000000000001\r\nx\r\n", 1000)},
                    EndlessCase{"Trailers", "0\r\n" + repeated("a: b\r\n", 1000)}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ClientFlood, LeavesTurnsOfTheLoopToOtherExchanges) {
  ScriptedServer flood(endless("10000\r\n" + std::string(0x10000, 'x') + "\r\n"));
  ScriptedServer quick(always(std::string(kOkResponse)));
  const auto flood_url = parse_url(flood.url());
  std::vector<Exchange> floods(20);
  runtime::TaskGroup flooding;
  for (Exchange& exchange : floods) flooding.spawn(stream(*flood_url, 1h, exchange));
  count_turn(0);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(status_of(fetch(quick.url(), 1h)), 200);
  is_counting_ = false;
  EXPECT_EQ(flooding.running(), 20u);
  client_->close();
  EXPECT_EQ(flooding.running(), 0u);
  for (const Exchange& exchange : floods) EXPECT_EQ(error_of(exchange), "canceled");
  EXPECT_GT(turn_bytes_, 0u);
  EXPECT_LE(turn_bytes_, 2 * ReadTurns::kTurnBytesMax);
}

TEST_F(ClientFlood, IsEndedByItsDeadline) {
  ScriptedServer server(endless("10000\r\n" + std::string(0x10000, 'x') + "\r\n"));
  const auto url = parse_url(server.url());
  Exchange exchange;
  runtime::TaskGroup group;
  group.spawn(stream(*url, 200ms, exchange));
  run_until_done(group);
  EXPECT_EQ(status_of(exchange), 200);
  EXPECT_FALSE(exchange.answer()->is_complete);
}

TEST_F(ClientFlood, OfInterimResponsesIsGivenUp) {
  ScriptedServer server([](Peer& peer) {
    peer.read_request();
    while (peer.write("HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n")) continue;
  });
  EXPECT_EQ(error_of(fetch(server.url())), "not_http");
  EXPECT_LE(client_->stats().bytes_received, kResponseHeadBytesMax + ReadTurns::kReaderBytesMax);
}

}  // namespace
}  // namespace postrider::http
