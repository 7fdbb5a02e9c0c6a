// Responses of receivers: the same result for any pieces, and never more bytes kept than requested.
#include <string>

#include "fuzz.hpp"
#include "postrider/http/client/response_reader.hpp"

using namespace postrider::http;

namespace {

std::string read(std::string_view input, size_t piece) {
  std::string streamed;
  const std::function<void(std::string_view)> on_body = [&](std::string_view data) { streamed += data; };
  ResponseReader reader(
      {.body_bytes_max = 256, .responds_to_head = false, .kept_bytes_max = 64, .on_body = &on_body});
  in_pieces(input, piece, [&](std::string_view bytes) {
    reader.feed(bytes);
    return !reader.is_done();
  });
  // Bytes after a response forbid using the connection again, but only if they have arrived: not compared.
  if (!reader.is_done()) reader.feed_end();
  if (!reader.has_head()) return "no response";
  const ReceivedResponse& answer = reader.answer();
  CHECK(answer.status >= 100 && answer.status <= 999);
  CHECK(answer.body_start.size() <= 64);
  CHECK(answer.status >= 300 ? streamed.empty() : streamed.starts_with(answer.body_start));
  std::string text = std::to_string(answer.status) + " " + answer.retry_after + " " + answer.content_type;
  return text + (answer.is_complete ? " whole " + answer.body_start : " cut");
}

}  // namespace

void fuzz_one(std::string_view input) {
  const std::string whole = read(input, input.size() + 1);
  for (const size_t piece : {1u, 5u}) CHECK(read(input, piece) == whole);
}
