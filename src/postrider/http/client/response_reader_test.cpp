// The response reader without a network: any bytes, in pieces of any size.
#include <gtest/gtest.h>

#include <random>

#include "postrider/http/client/response_reader.hpp"

namespace postrider::http {
namespace {

struct Outcome {
  std::string text;
  bool can_reuse;
  bool operator==(const Outcome&) const = default;
};

Outcome read_in_pieces(std::string_view bytes, size_t piece) {
  ResponseReader reader({.body_bytes_max = 4096, .responds_to_head = false});
  for (size_t at = 0; at < bytes.size(); at += piece) reader.feed(bytes.substr(at, piece));
  const bool can_reuse = reader.can_reuse();
  if (!reader.is_done()) reader.feed_end();
  if (reader.error()) return {std::string(to_string(*reader.error())), can_reuse};
  const ReceivedResponse& answer = reader.answer();
  return {std::to_string(answer.status) + (answer.is_complete ? " " : " cut ") + answer.body_start,
          can_reuse};
}

const std::string samples[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200\nContent-Length: 5\n\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
    "chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: 1\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
    "HTTP/1.0 500 X\r\n\r\nuntil the end",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
    "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 099 Odd\r\n\r\n",
    "HTTP/2 200\r\n\r\n",
    "\r\n\r\n",
};

TEST(ResponseReader, ComesToTheSameWhateverThePieces) {
  for (const std::string& sample : samples) {
    const Outcome byte_wise = read_in_pieces(sample, 1);
    for (const size_t piece : {2u, 3u, 7u, 10000u})
      EXPECT_EQ(read_in_pieces(sample, piece), byte_wise) << sample;
  }
}

TEST(ResponseReader, UnderstandsTheSamples) {
  EXPECT_EQ(read_in_pieces(samples[0], 1), (Outcome{"200 hello", true}));
  EXPECT_EQ(read_in_pieces(samples[1], 1), (Outcome{"200 hello", true}));
  EXPECT_EQ(read_in_pieces(samples[2], 1), (Outcome{"200 hello", true}));
  EXPECT_EQ(read_in_pieces(samples[3], 1), (Outcome{"204 ", true}));
  EXPECT_EQ(read_in_pieces(samples[4], 1), (Outcome{"204 ", false}));
  EXPECT_EQ(read_in_pieces(samples[5], 1), (Outcome{"500 until the end", false}));
  EXPECT_EQ(read_in_pieces(samples[6], 1), (Outcome{"200 hello", false}));
  EXPECT_EQ(read_in_pieces(samples[7], 1), (Outcome{"200 abc", false}));
  EXPECT_EQ(read_in_pieces(samples[8], 1), (Outcome{"200 abc", false}));
  EXPECT_EQ(read_in_pieces(samples[9], 1), (Outcome{"200 cut ", false}));
  EXPECT_EQ(read_in_pieces(samples[10], 1), (Outcome{"200 abc", false}));
  EXPECT_EQ(read_in_pieces(samples[11], 1), (Outcome{"999 ", true}));
  EXPECT_EQ(read_in_pieces(samples[12], 1), (Outcome{"not_http", false}));
  EXPECT_EQ(read_in_pieces(samples[13], 1), (Outcome{"not_http", false}));
  EXPECT_EQ(read_in_pieces(samples[14], 1), (Outcome{"not_http", false}));
}

TEST(ResponseReader, ABodyKnownToBeTooLongIsReadForThePreviewOnly) {
  ResponseReader reader({.body_bytes_max = 4096, .responds_to_head = false});
  reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_FALSE(reader.is_done());
  reader.feed(std::string(kResponsePreviewBytesMax, 'x'));
  EXPECT_TRUE(reader.is_done());
  EXPECT_FALSE(reader.answer().is_complete);
  EXPECT_FALSE(reader.can_reuse());
}

// Data between two pieces of framing does not raise the limit on framing.
TEST(ResponseReader, AllChunkFramingCountsAgainstOneTotal) {
  constexpr size_t framing_bytes_max = 10'000;
  for (const std::string_view piece :
       {"1;a=b\r\nx\r\n", "1\r\nx\r\n", "00000001\r\nx\r\n", "1;ccccccccccccccccccccccccc\nx\n"}) {
    ResponseReader reader({.body_bytes_max = SIZE_MAX, .framing_bytes_max = framing_bytes_max});
    reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    size_t fed = 0;
    while (!reader.is_done() && fed < 1'000'000) {
      reader.feed(piece);
      fed += piece.size();
    }
    EXPECT_TRUE(reader.is_done()) << piece;
    EXPECT_FALSE(reader.answer().is_complete) << piece;
    EXPECT_LE(fed - reader.answer().body_bytes, framing_bytes_max + piece.size()) << piece;
  }
}

TEST(ResponseReader, EndlessChunkFramingIsGivenUp) {
  for (const std::string_view filler : {"a", "T: x\r\n"}) {
    ResponseReader reader({.body_bytes_max = 4096});
    reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    reader.feed(filler == "a" ? "1;" : "0\r\n");
    size_t fed = 0;
    while (!reader.is_done() && fed < 1'000'000) {
      reader.feed(filler);
      fed += filler.size();
    }
    EXPECT_TRUE(reader.is_done());
    EXPECT_LE(fed, kChunkFramingBytesMax + filler.size());
  }
}

// Mutated responses neither crash the reader nor depend on how they are split. The seed is fixed, so that a
// failure can be repeated.
TEST(ResponseReader, SurvivesMutatedAnswers) {
  std::mt19937 random(20261115);
  const std::string alphabet =
      "HTP/1. 0\r\n:;,cC-xX\t\0\xff"
      "chunked";
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = samples[random() % std::size(samples)];
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % bytes.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0)
        bytes.insert(at, 1, c);
      else if (random() % 2 == 0)
        bytes[at] = c;
      else if (bytes.size() > 1)
        bytes.erase(at, 1);
    }
    ASSERT_EQ(read_in_pieces(bytes, 1), read_in_pieces(bytes, 10000)) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace postrider::http
