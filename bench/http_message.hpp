// Just enough HTTP/1.1 framing for the benchmark tools: bodies have a content-length or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bench {

struct Message {
  std::string_view start_line;  // without CRLF
  std::string_view fields;      // header lines, without the blank one
  std::string_view body;
  std::size_t bytes;  // of the whole message, to be consumed
};

// The first whole message in `buffer`; nothing when more bytes are needed.
std::optional<Message> first_message(std::string_view buffer);

// The value of a header field; the name is given in lower case. Empty when absent.
std::string_view field_value(std::string_view fields, std::string_view name);

std::string_view target_of(const Message& request);  // "POST /x HTTP/1.1" → "/x"
int status_of(const Message& response);              // 0 when there is none

// The unsigned number that follows `name` in `text` (`"bench_seq":17` → 17).
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name);

}  // namespace bench
