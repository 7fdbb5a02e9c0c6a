// The framing of chunked responses: whatever a receiver sends, and however often it repeats it, the reader
// takes a bounded number of bytes, and the same in any pieces.
//
// The input is a script, so that a short one can describe a long response: a byte "repeat", a byte "length",
// and that many bytes of the body; over and over.
#include <algorithm>
#include <string>

#include "fuzz.hpp"
#include "postrider/http/client/response_reader.hpp"

using namespace postrider::http;

namespace {

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
constexpr size_t kBodyMax = 300, kFramingMax = 500, kSentMax = 4'000;

std::string response_of(std::string_view script) {
  std::string sent(kHead);
  while (script.size() >= 2 && sent.size() < kSentMax) {
    const auto times = static_cast<unsigned char>(script[0]);
    const std::string_view piece = script.substr(2, static_cast<unsigned char>(script[1]));
    script.remove_prefix(2 + piece.size());
    for (int i = 0; i <= times && sent.size() < kSentMax; ++i) sent += piece;
  }
  return sent;
}

struct Reading {
  bool is_done = false, is_complete = false;
  uint64_t body_bytes = 0;
  std::string body_start;
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view sent, size_t piece) {
  ResponseReader reader(
      {.body_bytes_max = kBodyMax, .framing_bytes_max = kFramingMax, .kept_bytes_max = kBodyMax});
  size_t taken = 0;
  in_pieces(sent, piece, [&](std::string_view bytes) {
    taken += bytes.size();
    reader.feed(bytes);
    return !reader.is_done();
  });
  // The bound on work: it has stopped by then.
  CHECK(taken <= kHead.size() + kBodyMax + kFramingMax + piece || reader.is_done());
  if (piece == 1) CHECK(taken <= kHead.size() + kBodyMax + kFramingMax + 1);
  if (!reader.has_head()) return {};
  const ReceivedResponse& answer = reader.answer();
  CHECK(answer.body_start.size() <= kBodyMax);
  // Of a body that is cut at its limit, how much was seen beyond it depends on the pieces.
  return {reader.is_done(), answer.is_complete, std::min<uint64_t>(answer.body_bytes, kBodyMax + 1),
          answer.body_start};
}

}  // namespace

void fuzz_one(std::string_view input) {
  const std::string sent = response_of(input);
  const Reading whole = read(sent, sent.size() + 1);
  for (const size_t piece : {1u, 7u}) CHECK(read(sent, piece) == whole);
}
