// A second opinion on the request reader: whatever it accepts, Beast's parser must accept and read the same
// way.
#include "postrider/http/server/request_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <random>

namespace postrider::http {
namespace {

namespace beast_http = boost::beast::http;

struct Reading {
  bool is_complete = false;
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> fields;
  size_t bytes = 0;
  bool operator==(const Reading&) const = default;
};

Reading ours(const std::string& bytes) {
  RequestReader reader({.bytes_max = 16 << 10, .fields_max = 100, .target_bytes_max = 8 << 10});
  Reading reading;
  std::string_view rest = bytes;
  while (!rest.empty() || reader.stage() == RequestReader::Stage::decide) {
    if (reader.stage() == RequestReader::Stage::decide) {
      reader.accept_body(1 << 20);
      continue;
    }
    const size_t taken = reader.feed(rest);
    if (taken == 0) break;
    rest.remove_prefix(taken);
  }
  if (reader.stage() != RequestReader::Stage::complete) return reading;
  reading.is_complete = true;
  reading.bytes = bytes.size() - rest.size();
  const Request& request = reader.request();
  reading.method = method_name(request.method);
  reading.target = request.path;
  reading.body = request.body;
  for (const Field& field : request.fields) reading.fields.emplace_back(field.name, field.value);
  return reading;
}

// Nothing if Beast fails on a trailer field: it parses trailers as part of the head, and the reader ignores
// them.
std::optional<Reading> beasts(const std::string& bytes) {
  beast_http::request_parser<beast_http::string_body> parser;
  parser.header_limit(17 << 10);
  Reading reading;
  boost::system::error_code error;
  size_t at = 0;
  while (at < bytes.size() && !parser.is_done()) {
    const bool is_body = parser.is_header_done();
    parser.eager(is_body);
    const size_t taken = parser.put(boost::asio::buffer(bytes.data() + at, bytes.size() - at), error);
    using Error = beast_http::error;
    if (is_body && (error == Error::bad_transfer_encoding || error == Error::bad_content_length ||
                    error == Error::multiple_content_length || error == Error::bad_value))
      return std::nullopt;
    if (error || taken == 0) return reading;
    at += taken;
    if (!is_body && parser.is_header_done())
      for (const auto& field : parser.get()) reading.fields.emplace_back(field.name_string(), field.value());
  }
  if (!parser.is_done()) return reading;
  const auto& message = parser.get();
  reading.is_complete = true;
  reading.bytes = at;
  reading.method = message.method_string();
  reading.target = message.target().substr(0, message.target().find('?'));
  reading.body = message.body();
  return reading;
}

const std::string kSeeds[] = {
    "POST /v1/tenants/t/events HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Type: "
    "application/json\r\n\r\nbody",
    "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\nX-Empty:\r\nConnection: keep-alive\r\n\r\n",
    "PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
    "chunked\r\n\r\n3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
    "DELETE /x HTTP/1.0\r\nUser-Agent: \t old \t\r\n\r\n",
};

// Beast keeps fields of one name together, wherever they were.
Reading in_order(Reading reading) {
  std::sort(reading.fields.begin(), reading.fields.end());
  return reading;
}

TEST(RequestReader, ReadsGoodRequestsAsBeastDoes) {
  for (const std::string& seed : kSeeds) {
    const Reading reading = ours(seed);
    EXPECT_TRUE(reading.is_complete) << seed;
    EXPECT_EQ(reading.bytes, seed.size()) << seed;
    EXPECT_EQ(in_order(reading), in_order(beasts(seed).value())) << seed;
  }
}

TEST(RequestReader, ABodyHasOneTypeAtMost) {
  const std::string one = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";
  const std::string rest = "Content-Length: 2\r\n\r\n{}";
  EXPECT_TRUE(ours(one + rest).is_complete);
  EXPECT_FALSE(ours(one + "content-type: text/plain\r\n" + rest).is_complete);
  EXPECT_FALSE(ours(one + "Content-Type: application/json\r\n" + rest).is_complete);
}

TEST(RequestReader, AcceptsNothingThatBeastReadsDifferently) {
  const uint64_t seed = std::random_device()();
  std::mt19937_64 random(seed);
  const std::string_view pieces[] = {"\r\n",
                                     "\n",
                                     "\r",
                                     " ",
                                     "\t",
                                     ":",
                                     "\0",
                                     "0",
                                     "a",
                                     "Content-Length: 3\r\n",
                                     "Transfer-Encoding: chunked\r\n",
                                     "Host: h\r\n",
                                     ",",
                                     ";",
                                     "%41",
                                     "\xc3\xa9",
                                     "\r\n\r\n",
                                     "HTTP/1.1",
                                     "/",
                                     "x: y\r\n"};
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes = kSeeds[random() % std::size(kSeeds)];
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes.erase(at, 1 + random() % 4);
          break;
        case 1:
          bytes[at] = static_cast<char>(random());
          break;
        case 2:
          bytes.insert(at, pieces[random() % std::size(pieces)]);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    const Reading reading = ours(bytes);
    if (!reading.is_complete || reading.method == "other") continue;
    ++accepted;
    // Two things that the reader accepts and Beast does not: an empty line first, and an absolute target.
    if (bytes.starts_with("\r\n")) continue;
    const auto second_opinion = beasts(bytes);
    if (!second_opinion) continue;
    ASSERT_EQ(in_order(reading), in_order(*second_opinion)) << "seed " << seed << " round " << round << "\n"
                                                            << bytes;
  }
  EXPECT_GT(accepted, 10'000);
}

// Tiny chunks are mostly framing. It counts as the body does.
TEST(RequestChunks, AllFramingCountsAgainstOneTotal) {
  constexpr size_t body_bytes_max = 10'000, extra_bytes_max = 1'000;
  for (const std::string_view piece : {"1\r\nx\r\n", "0000000000000001\r\nx\r\n"}) {
    RequestChunks chunks(body_bytes_max, extra_bytes_max);
    std::string body;
    size_t taken = 0;
    while (!chunks.rejection() && taken < 1'000'000) taken += chunks.feed(piece, body);
    ASSERT_TRUE(chunks.rejection()) << piece;
    EXPECT_EQ(chunks.rejection()->status, 413) << piece;
    EXPECT_LE(taken - body.size(), body_bytes_max + extra_bytes_max) << piece;
  }
}

}  // namespace
}  // namespace postrider::http
