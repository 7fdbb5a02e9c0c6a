// Chunked bodies decode to the same in any pieces, never to more than allowed.
#include <string>

#include "fuzz.hpp"
#include "postrider/http/server/request_chunks.hpp"

using namespace postrider::http;

namespace {

constexpr size_t kBodyMax = 300;

std::string read(std::string_view input, size_t piece) {
  RequestChunks chunks(kBodyMax, 100);
  std::string body;
  size_t taken = 0;
  in_pieces(input, piece, [&](std::string_view bytes) {
    const size_t took = chunks.feed(bytes, body);
    CHECK(took <= bytes.size());
    taken += took;
    CHECK(took == bytes.size() || chunks.is_done() || chunks.rejection());
    return !chunks.is_done() && !chunks.rejection();
  });
  CHECK(body.size() <= kBodyMax);
  if (chunks.rejection()) return "rejected " + std::to_string(chunks.rejection()->status);
  return body + (chunks.is_done() ? "| done at " + std::to_string(taken) : "| more");
}

}  // namespace

void fuzz_one(std::string_view input) {
  const std::string whole = read(input, input.size() + 1);
  for (const size_t piece : {1u, 3u}) CHECK(read(input, piece) == whole);
}
