#include "postrider/cli/body_variants.hpp"

#include <boost/json/parse.hpp>

namespace postrider::cli {

namespace {

bool is_json(std::string_view text) {
  boost::system::error_code error;
  boost::json::parse(text, error);
  return !error;
}

// Calls `visit(character, is_in_string)` for each character.
template <class Visit>
void each_character(std::string_view text, const Visit& visit) {
  bool is_string = false, is_escaped = false;
  for (const char c : text) {
    const bool was_string = is_string;
    if (is_escaped)
      is_escaped = false;
    else if (is_string && c == '\\')
      is_escaped = true;
    else if (c == '"')
      is_string = !is_string;
    visit(c, was_string || is_string);
  }
}

// As Python's json.dumps writes it.
std::string spaced_json(std::string_view compact) {
  std::string out;
  each_character(compact, [&](char c, bool is_string) {
    out += c;
    if (!is_string && (c == ',' || c == ':')) out += ' ';
  });
  return out;
}

// As JSON.stringify(value, null, indent) writes it.
std::string indented_json(std::string_view compact, size_t indent) {
  std::string out;
  size_t depth = 0;
  char before = 0;
  const auto break_line = [&] { out += "\n" + std::string(depth * indent, ' '); };
  each_character(compact, [&](char c, bool is_string) {
    const bool is_close = !is_string && (c == '}' || c == ']');
    const bool was_open = before == '{' || before == '[';
    if (is_close) {
      --depth;
      if (!was_open) break_line();
    } else if (was_open) {
      break_line();
    }
    out += c;
    before = is_string ? 0 : c;
    if (is_string) return;
    if (c == '{' || c == '[') ++depth;
    if (c == ',') break_line();
    if (c == ':') out += ' ';
  });
  return out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::string compact_json(std::string_view text) {
  if (!is_json(text)) return std::string(text);
  std::string out;
  each_character(text, [&](char c, bool is_string) {
    const bool is_space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (is_string || !is_space) out += c;
  });
  return out;
}

std::vector<BodyVariant> body_variants(const std::string& body) {
  std::vector<BodyVariant> variants;
  const auto add = [&](std::string other, const char* explanation) {
    if (other != body) variants.push_back({std::move(other), explanation});
  };
  std::string trimmed = body;
  while (trimmed.ends_with('\n') || trimmed.ends_with('\r')) trimmed.pop_back();
  add(trimmed, "The body differs: it has a line break at its end that was not signed.");
  add(body + "\n", "The body differs: a line break at its end was signed and is missing.");
  add("", "The body differs: an empty body was signed.");
  const std::string unix_lines = replaced(body, "\r\n", "\n");
  add(unix_lines, "The body differs: its line breaks were changed from LF to CRLF.");
  add(replaced(unix_lines, "\n", "\r\n"), "The body differs: its line breaks were changed from CRLF to LF.");
  if (!is_json(body)) return variants;
  constexpr const char* kSerialized =
      "The body differs: it was parsed and serialized again, which changed its whitespace. Verify the bytes "
      "exactly as "
      "received, before parsing them.";
  const std::string compact = compact_json(body);
  add(compact, kSerialized);
  add(spaced_json(compact), kSerialized);
  add(indented_json(compact, 2), kSerialized);
  add(indented_json(compact, 4), kSerialized);
  return variants;
}

}  // namespace postrider::cli
