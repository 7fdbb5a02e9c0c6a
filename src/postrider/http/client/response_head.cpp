#include "postrider/http/client/response_head.hpp"

#include <algorithm>
#include <limits>

#include "postrider/base/text.hpp"

namespace postrider::http {

namespace {

constexpr std::string_view kVersionStart = "HTTP/1.";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

template <class Use>
void for_each_in_list(std::string_view list, Use use) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = trimmed(list.substr(0, comma));
    if (!item.empty()) use(item);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

std::optional<uint64_t> parse_length(std::string_view digits) {
  if (digits.empty() || digits.size() > 18 || !std::all_of(digits.begin(), digits.end(), is_digit))
    return std::nullopt;
  uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
  return value;
}

// "HTTP/1.1 200 OK", "HTTP/1.0 200", with any number of spaces between.
bool parse_status_line(std::string_view line, int& status, bool& is_http_1_0) {
  if (!line.starts_with(kVersionStart)) return false;
  line.remove_prefix(kVersionStart.size());
  if (line.empty() || !is_digit(line.front())) return false;
  is_http_1_0 = line.front() == '0';
  line.remove_prefix(1);
  if (line.empty() || !is_space(line.front())) return false;
  line = trimmed(line);
  if (line.size() < 3 || !is_digit(line[0]) || !is_digit(line[1]) || !is_digit(line[2])) return false;
  if (line.size() > 3 && !is_space(line[3])) return false;
  status = (line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0');
  return status >= 100;
}

// Derives the framing of the body and the state of the connection from the fields.
struct Framing {
  std::optional<uint64_t> length;
  bool is_chunked = false;
  bool has_coding = false;
  bool is_doubtful = false;
  bool closes = false;
  bool keeps = false;

  void add_length(std::string_view value) {
    for_each_in_list(value, [this](std::string_view item) {
      const auto number = parse_length(item);
      if (!number || (length && *length != *number)) is_doubtful = true;
      if (number) length = number;
    });
  }
  void add_coding(std::string_view value) {
    for_each_in_list(value, [this](std::string_view item) {
      has_coding = true;
      if (base::equals_ignoring_case(item, "identity")) return;
      if (is_chunked || !base::equals_ignoring_case(item, "chunked")) is_doubtful = true;
      is_chunked = base::equals_ignoring_case(item, "chunked");
    });
  }
  void add_connection(std::string_view value) {
    for_each_in_list(value, [this](std::string_view item) {
      if (base::equals_ignoring_case(item, "close")) closes = true;
      if (base::equals_ignoring_case(item, "keep-alive")) keeps = true;
    });
  }
};

void read_field(std::string_view line, ResponseHead& head, Framing& framing) {
  const size_t colon = line.find(':');
  if (line.empty() || is_space(line.front()) || colon == std::string_view::npos) {
    framing.is_doubtful = true;  // a folded or broken line: skipped
    return;
  }
  const std::string_view name = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  switch (name.size()) {
    case 10:
      if (base::equals_ignoring_case(name, "connection")) framing.add_connection(value);
      break;
    case 11:
      if (base::equals_ignoring_case(name, "retry-after")) head.retry_after = value;
      break;
    case 12:
      if (base::equals_ignoring_case(name, "content-type")) head.content_type = value;
      break;
    case 14:
      if (base::equals_ignoring_case(name, "content-length")) framing.add_length(value);
      break;
    case 17:
      if (base::equals_ignoring_case(name, "transfer-encoding")) framing.add_coding(value);
      break;
    default:
      break;
  }
}

}  // namespace

std::optional<size_t> find_head_end(std::string_view text, size_t from) {
  size_t line_end = text.find('\n', from);
  while (line_end != std::string_view::npos) {
    const size_t next = line_end + 1;
    if (next < text.size() && text[next] == '\n') return next + 1;
    if (next + 1 < text.size() && text[next] == '\r' && text[next + 1] == '\n') return next + 2;
    line_end = text.find('\n', next);
  }
  return std::nullopt;
}

bool may_be_http(std::string_view text) {
  const size_t known = std::min(text.size(), kVersionStart.size());
  return text.substr(0, known) == kVersionStart.substr(0, known);
}

std::optional<ResponseHead> parse_response_head(std::string_view text, bool responds_to_head) {
  ResponseHead head;
  Framing framing;
  bool is_http_1_0 = false;
  if (!parse_status_line(trimmed(take_line(text)), head.status, is_http_1_0)) return std::nullopt;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (trimmed(line).empty()) break;
    read_field(line, head, framing);
  }

  const bool is_doubtful = framing.is_doubtful || (framing.has_coding && framing.length);
  head.is_reusable = !is_doubtful && !framing.closes && (!is_http_1_0 || framing.keeps);
  if (responds_to_head || head.status < 200 || head.status == 204 || head.status == 304) {
    head.body = BodyKind::none;
    // A body is announced where none is allowed: its bytes would be read as the next response.
    const bool announces = framing.is_chunked || framing.length.value_or(0) > 0;
    if (announces && !responds_to_head && head.status != 304) head.is_reusable = false;
  } else if (framing.is_chunked) {
    head.body = BodyKind::chunked;
  } else if (framing.length && !is_doubtful) {
    head.body = BodyKind::length;
    head.body_bytes = *framing.length;
  } else {
    head.is_reusable = false;
  }
  return head;
}

}  // namespace postrider::http
