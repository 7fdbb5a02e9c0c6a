// The head of an HTTP/1 response, parsed as leniently as browsers and curl do: no reason phrase, bare LF,
// white space before a colon, folded and broken lines. If it is not certain where the body ends, the
// connection is not reused. This is not Beast's parser, which rejects all of these and costs more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace postrider::http {

inline constexpr size_t kResponseHeadBytesMax = 32 * 1024;

enum class BodyKind : uint8_t { none, length, chunked, until_end };

struct ResponseHead {  // views into the parsed text
  int status = 0;
  BodyKind body = BodyKind::until_end;
  uint64_t body_bytes = 0;  // when body is length
  bool is_reusable = false;
  std::string_view retry_after;
  std::string_view content_type;
};

// The end of the head (after its blank line) if `text` contains it; `from` is how far earlier calls have
// searched.
std::optional<size_t> find_head_end(std::string_view text, size_t from);

// Could `text`, the start of a response, still become a valid one?
bool may_be_http(std::string_view text);

// `head` is complete, blank line included. nullopt: not HTTP/1.
std::optional<ResponseHead> parse_response_head(std::string_view head, bool responds_to_head);

}  // namespace postrider::http
