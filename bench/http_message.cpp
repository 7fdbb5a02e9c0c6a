#include "http_message.hpp"

#include <algorithm>
#include <charconv>

namespace bench {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return lower(a) == b; });
}

}  // namespace

std::string_view field_value(std::string_view fields, std::string_view name) {
  while (!fields.empty()) {
    const auto end = fields.find("\r\n");
    const std::string_view line = fields.substr(0, end);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        equals_ignoring_case(line.substr(0, name.size()), name)) {
      const auto start = line.find_first_not_of(' ', name.size() + 1);
      return start == std::string_view::npos ? std::string_view{} : line.substr(start);
    }
    if (end == std::string_view::npos) break;
    fields.remove_prefix(end + 2);
  }
  return {};
}

std::optional<Message> first_message(std::string_view buffer) {
  const auto head_end = buffer.find("\r\n\r\n");
  if (head_end == std::string_view::npos) return std::nullopt;
  const std::string_view head = buffer.substr(0, head_end);
  const auto line_end = head.find("\r\n");
  Message message{};
  message.start_line = head.substr(0, line_end);
  if (line_end != std::string_view::npos) message.fields = head.substr(line_end + 2);

  std::size_t body_bytes = 0;
  const std::string_view length = field_value(message.fields, "content-length");
  std::from_chars(length.data(), length.data() + length.size(), body_bytes);
  message.bytes = head_end + 4 + body_bytes;
  if (buffer.size() < message.bytes) return std::nullopt;
  message.body = buffer.substr(head_end + 4, body_bytes);
  return message;
}

std::string_view target_of(const Message& request) {
  const auto start = request.start_line.find(' ');
  if (start == std::string_view::npos) return {};
  const auto end = request.start_line.find(' ', start + 1);
  return request.start_line.substr(start + 1, end == std::string_view::npos ? end : end - start - 1);
}

int status_of(const Message& response) {
  const auto start = response.start_line.find(' ');
  int status = 0;
  if (start != std::string_view::npos)
    std::from_chars(response.start_line.data() + start + 1,
                    response.start_line.data() + response.start_line.size(), status);
  return status;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  auto start = text.find_first_not_of(' ', at + name.size());
  if (start == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace bench
