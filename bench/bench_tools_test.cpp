// The benchmark's own tools: their arithmetic, and the programs against each other on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "arrival_ledger.hpp"
#include "client_connection.hpp"
#include "event_writer.hpp"
#include "histogram.hpp"
#include "http_message.hpp"
#include "net.hpp"

namespace bench {
namespace {

using testing::HasSubstr;

TEST(Histogram, KnowsPercentilesToWithinItsSlotWidth) {
  Histogram histogram;
  for (std::uint64_t us = 1; us <= 10'000; ++us) histogram.record(us * 1000);
  for (const double fraction : {0.5, 0.9, 0.99, 0.999}) {
    const double exact = fraction * 10'000'000;
    EXPECT_NEAR(static_cast<double>(histogram.percentile(fraction)), exact, exact * 0.017) << fraction;
  }
  EXPECT_EQ(histogram.percentile(1.0), 10'000'000u);
  EXPECT_EQ(histogram.mean_ns(), 5'000'500u);
}

TEST(Histogram, IsExactForSmallValuesAndTakesTheLargest) {
  Histogram histogram;
  histogram.record(0);
  histogram.record(7);
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.percentile(0.3), 0u);
  EXPECT_EQ(histogram.percentile(0.6), 7u);
  EXPECT_EQ(histogram.percentile(1.0), ~std::uint64_t{0});
}

TEST(Histogram, PointsRiseToOne) {
  Histogram histogram;
  for (const std::uint64_t value : {5'000, 900, 5'001, 70'000'000}) histogram.record(value);
  const auto points = histogram.points();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points.front().fraction, 0.25);
  EXPECT_DOUBLE_EQ(points.back().fraction, 1.0);
  EXPECT_EQ(points.back().value_ns, 70'000'000u);
}

TEST(Histogram, IsZeroWhenNothingWasRecorded) {
  EXPECT_EQ(Histogram{}.percentile(0.99), 0u);
  EXPECT_TRUE(Histogram{}.points().empty());
}

TEST(HttpMessage, WaitsForTheWholeBody) {
  const std::string request = "POST /delay/20/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  EXPECT_FALSE(first_message(std::string_view{request}.substr(0, request.size() - 1)));
  const std::string with_next = request + "GET / HTTP/1.1\r\n\r\n";
  const auto message = first_message(with_next);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body, "hello");
  EXPECT_EQ(message->bytes, request.size());
  EXPECT_EQ(target_of(*message), "/delay/20/x");
  EXPECT_EQ(field_value(message->fields, "host"), "a");
}

TEST(HttpMessage, ReadsStatusAndNumbers) {
  const auto message = first_message("HTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(message);
  EXPECT_EQ(status_of(*message), 204);
  EXPECT_EQ(number_after("{\"bench_seq\": 17}", "\"bench_seq\":"), 17u);
  EXPECT_FALSE(number_after("{}", "\"bench_seq\":"));
}

TEST(EventWriter, SpreadsOverTenantsThenTypesWithDataOfTheAskedSize) {
  EventWriter writer{{.tenants = 3, .types = 2, .data_bytes = 160}, "127.0.0.1:1", "k"};
  const std::string request = writer.single({.number = 4, .published_ns = 99});
  const auto message = first_message(request);
  ASSERT_TRUE(message);
  EXPECT_EQ(target_of(*message), "/v1/tenants/bench-1/events");
  EXPECT_THAT(std::string{message->body}, HasSubstr("\"type\":\"bench.e1\""));
  const auto data = message->body.substr(message->body.find("\"data\":") + 7);
  EXPECT_EQ(data.size(), 160u + 1u);
}

TEST(ArrivalLedger, TellsDuplicatesFromSimultaneousSendings) {
  ArrivalLedger ledger{""};
  ledger.arrive(5, 100);
  ledger.leave(5);
  ledger.arrive(5, 200);  // again, after the response to the first
  ledger.arrive(5, 300);  // while the second is unanswered
  EXPECT_EQ(ledger.counts().unique, 1u);
  EXPECT_EQ(ledger.counts().duplicates, 2u);
  EXPECT_EQ(ledger.counts().overlaps, 1u);
  ledger.clear();
  ledger.arrive(5, 400);
  EXPECT_EQ(ledger.counts().unique, 1u);
  EXPECT_EQ(ledger.counts().overlaps, 0u);
}

// Runs a tool and gives what it printed.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> chunk{};
  while (const std::size_t got = fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

class RunningReceiver : public testing::Test {
 protected:
  void SetUp() override {
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], 1);
      execl(RECEIVER, RECEIVER, "--listen", "127.0.0.1:0", "--hosts", "2", nullptr);
      _exit(127);
    }
    close(out[1]);
    std::FILE* lines = fdopen(out[0], "r");
    unsigned port = 0;
    ASSERT_EQ(std::fscanf(lines, "listening on port %u", &port), 1);
    std::fclose(lines);
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  void TearDown() override {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_EQ(status, 0);
  }

  std::string get(const std::string& path) {
    return exchange("GET " + path + " HTTP/1.1\r\nhost: x\r\n\r\n");
  }
  std::string exchange(const std::string& request) {
    const Descriptor epoll = make_epoll();
    ClientConnection connection{parse_address(address_), epoll.get(), 0};
    connection.send(request);
    for (;;) {
      epoll_event event{};
      epoll_wait(epoll.get(), &event, 1, 1000);
      if (const auto response = connection.read())
        return std::to_string(response->status) + " " + std::string{response->body};
    }
  }
  std::uint64_t stat(const std::string& name) {
    return number_after(get("/__stats"), "\"" + name + "\":").value_or(~std::uint64_t{0});
  }

  pid_t pid_ = -1;
  std::string address_;
};

TEST_F(RunningReceiver, CountsEveryEventOfTheLoadGeneratorOnce) {
  const std::string single =
      output_of(std::string{LOADGEN} + " --target " + address_ + " --count 500 --seconds 30");
  EXPECT_THAT(single, HasSubstr("\"acked\":500,\"rejected\":0"));
  EXPECT_EQ(stat("received"), 500u);
  EXPECT_EQ(stat("unique"), 500u);
  EXPECT_EQ(stat("duplicates"), 0u);
  EXPECT_EQ(number_after(get("/__stats"), "\"latency\":{\"count\":"), 500u);
  EXPECT_GT(stat("p50_ns"), 0u);

  output_of(std::string{LOADGEN} + " --target " + address_ + " --count 100 --seconds 30");
  EXPECT_EQ(stat("duplicates"), 100u);
  get("/__reset");
  EXPECT_EQ(stat("received"), 0u);
}

TEST_F(RunningReceiver, StopsTheLoadGeneratorAtItsWindow) {
  // A batch reaches this receiver as one request: after the window is filled, the published events run ahead
  // of it.
  const std::string text = output_of(std::string{LOADGEN} + " --target " + address_ + " --receiver " +
                                     address_ + " --window 400 --batch 100 --connections 1 --seconds 1");
  EXPECT_LE(number_after(text, "\"sent\":").value_or(0), 600u);
  EXPECT_GE(number_after(text, "\"sent\":").value_or(0), 400u);
}

TEST_F(RunningReceiver, PacesAnOpenLoopAndRecordsSendAndAnswerTimes) {
  const std::string path = testing::TempDir() + "bench_record_" + std::to_string(getpid());
  const std::string text = output_of(std::string{LOADGEN} + " --target " + address_ +
                                     " --rate 2000 --count 200 --seconds 30 --record " + path);
  EXPECT_THAT(text, HasSubstr("\"acked\":200,"));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::vector<std::uint64_t> record(401);
  EXPECT_EQ(std::fread(record.data(), 8, record.size(), file), 400u);
  std::fclose(file);
  std::remove(path.c_str());
  for (std::size_t i = 0; i < 200; ++i) EXPECT_LT(record[2 * i], record[2 * i + 1]);
  EXPECT_GE(record[398] - record[0], 90'000'000u);
}

TEST_F(RunningReceiver, AnswersByPath) {
  const std::string post = " HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
  EXPECT_EQ(exchange("POST /ok/1" + post), "200 ok");
  EXPECT_EQ(exchange("POST /fail/503/1" + post), "503 ok");
  const std::uint64_t before = now_ns();
  EXPECT_EQ(exchange("POST /delay/30/1" + post), "200 ok");
  EXPECT_GE(now_ns() - before, 30'000'000u);
  EXPECT_EQ(stat("in_flight_peak"), 1u);
  EXPECT_EQ(stat("in_flight"), 0u);
}

TEST_F(RunningReceiver, MeasuresTheRawLoop) {
  const std::string text = output_of(std::string{RAW_HTTP} + " --target " + address_ + " --seconds 0.2");
  EXPECT_GT(number_after(text, "\"requests\":").value_or(0), 0u);
  EXPECT_THAT(text, HasSubstr("\"errors\":0,"));
}

}  // namespace
}  // namespace bench
