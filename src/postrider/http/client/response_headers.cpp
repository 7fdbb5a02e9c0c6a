#include "postrider/http/client/response_headers.hpp"

#include <algorithm>

#include "postrider/base/text.hpp"
#include "postrider/http/client/preview.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

namespace {

constexpr size_t kValueBytesMax = 512, kNameBytesMax = 128;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
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

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return grammar::is(c, grammar::token); });
}

// A challenge says which credentials the endpoint expects, and is often the reason for a 401.
bool is_secret(std::string_view name) {
  if (name == "www-authenticate" || name == "proxy-authenticate") return false;
  constexpr std::string_view words[] = {"cookie", "auth",      "token",   "secret",    "password",
                                        "key",    "signature", "session", "credential"};
  return std::any_of(std::begin(words), std::end(words),
                     [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string shown_value(std::string_view name, std::string_view value) {
  if (is_secret(name)) return "[redacted]";
  const bool is_whole = value.size() <= kValueBytesMax;
  std::string shown = redacted_preview(value.substr(0, kValueBytesMax), is_whole);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  return shown;
}

}  // namespace

std::string redacted_headers(std::string_view head) {
  std::string stored;
  take_line(head);  // the status line
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    if (trimmed(line).empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t') continue;
    const std::string name = base::lowered(trimmed(line.substr(0, colon)));
    if (!is_name(name)) continue;
    const std::string value = shown_value(name, trimmed(line.substr(colon + 1)));
    if (stored.size() + name.size() + value.size() + 3 > kStoredHeadersBytesMax) break;
    stored.append(name).append(": ").append(value).append("\n");
  }
  return stored;
}

std::vector<std::pair<std::string, std::string>> read_headers(std::string_view stored) {
  std::vector<std::pair<std::string, std::string>> headers;
  while (!stored.empty()) {
    const std::string_view line = take_line(stored);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon), value = line.substr(colon + 2);
    const auto known =
        std::find_if(headers.begin(), headers.end(), [name](const auto& h) { return h.first == name; });
    if (known == headers.end())
      headers.emplace_back(name, value);
    else
      known->second.append(", ").append(value);
  }
  return headers;
}

}  // namespace postrider::http
