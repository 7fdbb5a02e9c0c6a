#include "postrider/base/json_scanner.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "postrider/base/check.hpp"

namespace postrider::base {

namespace {

constexpr uint64_t kOnes = 0x0101010101010101ULL, kHighs = 0x8080808080808080ULL;

// Sets the high bit of each byte that ends a run of plain string bytes: a quote, a backslash, a control
// character. Bytes above the first hit may be wrong.
uint64_t special_bytes(uint64_t word) {
  const uint64_t quotes = word ^ (kOnes * '"'), backslashes = word ^ (kOnes * '\\');
  return ((word - kOnes * 0x20) & ~word & kHighs) | ((quotes - kOnes) & ~quotes & kHighs) |
         ((backslashes - kOnes) & ~backslashes & kHighs);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 63));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

// The four digits of a \u escape, already checked by the scanner.
uint32_t code_unit(std::string_view digits) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i) unit = unit << 4 | static_cast<uint32_t>(hex_digit(digits[i]));
  return unit;
}

}  // namespace

JsonScanner::JsonScanner(std::string_view text, int depth_max)
    : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), depth_max_(depth_max) {
  CHECK(depth_max > 0 && depth_max <= kDepthMax);
  if (!simdjson::validate_utf8(text.data(), text.size())) fail("the text is not valid UTF-8");
}

bool JsonScanner::fail(const char* what) {
  if (error_ == nullptr) error_ = what;
  return false;
}

std::string JsonScanner::error() const {
  CHECK(has_failed());
  return fmt::format("invalid JSON at byte {}: {}", at_ - begin_, error_);
}

char JsonScanner::token() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  return at_ == end_ ? '\0' : *at_;
}

char JsonScanner::peek() {
  return has_failed() ? '\0' : token();
}

bool JsonScanner::begin(char bracket) {
  if (has_failed()) return false;
  if (token() != bracket) return fail("unexpected kind of value");
  if (depth_ == depth_max_) return fail("nested too deeply");
  ++at_;
  ++depth_;
  is_first_ = true;
  return true;
}

bool JsonScanner::begin_object() {
  return begin('{');
}

bool JsonScanner::begin_array() {
  return begin('[');
}

// Called after `begin` or after a value: true when another one follows.
bool JsonScanner::next(char bracket) {
  if (has_failed()) return false;
  const char c = token();
  if (c == bracket) {
    ++at_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!is_first_) {
    if (c != ',') return fail("expected ',' or the end of the object or array");
    ++at_;
  }
  is_first_ = false;
  return true;
}

bool JsonScanner::next_member(std::string_view& key) {
  return next('}') && skip_key(&key);
}

bool JsonScanner::next_element() {
  return next(']');
}

bool JsonScanner::value(std::string_view& raw) {
  if (has_failed()) return false;
  token();
  const char* start = at_;
  if (!skip_value()) return false;
  raw = std::string_view(start, static_cast<size_t>(at_ - start));
  return true;
}

bool JsonScanner::finish() {
  if (has_failed()) return false;
  CHECK(depth_ == 0);
  token();
  return at_ == end_ || fail("unexpected text after the value");
}

bool JsonScanner::skip_value() {
  uint64_t is_object = 0;  // one bit per open container, the innermost lowest
  int open = 0;
  while (true) {
    const char c = token();
    if (c == '{' || c == '[') {
      if (depth_ + open == depth_max_) return fail("nested too deeply");
      ++at_;
      if (token() != (c == '{' ? '}' : ']')) {
        ++open;
        is_object = is_object << 1 | (c == '{' ? 1 : 0);
        if (c == '{' && !skip_key(nullptr)) return false;
        continue;
      }
      ++at_;
    } else if (!skip_scalar(c)) {
      return false;
    }
    while (open > 0) {
      const bool in_object = (is_object & 1) != 0;
      const char after = token();
      if (after == ',') {
        ++at_;
        if (in_object && !skip_key(nullptr)) return false;
        break;
      }
      if (after != (in_object ? '}' : ']')) return fail("expected ',' or the end of the object or array");
      ++at_;
      --open;
      is_object >>= 1;
    }
    if (open == 0) return true;
  }
}

bool JsonScanner::skip_key(std::string_view* key) {
  if (token() != '"') return fail("expected a string as the field name");
  const char* start = at_ + 1;
  if (!skip_string()) return false;
  if (key != nullptr) *key = std::string_view(start, static_cast<size_t>(at_ - 1 - start));
  if (token() != ':') return fail("expected ':'");
  ++at_;
  return true;
}

bool JsonScanner::skip_scalar(char first) {
  switch (first) {
    case '"':
      return skip_string();
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      return skip_number();
  }
}

bool JsonScanner::skip_word(std::string_view word) {
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  if (!rest.starts_with(word)) return fail("expected a value");
  at_ += word.size();
  return true;
}

bool JsonScanner::skip_string() {
  ++at_;
  while (true) {
    while (end_ - at_ >= 8) {
      uint64_t word;
      std::memcpy(&word, at_, 8);
      if (const uint64_t special = special_bytes(word)) {
        at_ += std::countr_zero(special) / 8;
        break;
      }
      at_ += 8;
    }
    if (at_ == end_) return fail("unterminated string");
    const char c = *at_;
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') {
      if (!skip_escape()) return false;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      return fail("control character in a string");
    } else {
      ++at_;
    }
  }
}

bool JsonScanner::skip_escape() {
  if (end_ - at_ < 2) return fail("unterminated string");
  const char c = at_[1];
  if (c == 'u') {
    if (end_ - at_ < 6) return fail("unterminated string");
    for (int i = 2; i < 6; ++i)
      if (hex_digit(at_[i]) < 0) return fail("invalid escape sequence");
    at_ += 6;
    return true;
  }
  if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos)
    return fail("invalid escape sequence");
  at_ += 2;
  return true;
}

bool JsonScanner::skip_digits() {
  const char* start = at_;
  while (at_ != end_ && is_digit(*at_)) ++at_;
  return at_ != start || fail("invalid number");
}

bool JsonScanner::skip_number() {
  const bool is_negative = at_ != end_ && *at_ == '-';
  if (is_negative) ++at_;
  if (at_ == end_ || !is_digit(*at_)) return fail(is_negative ? "invalid number" : "expected a value");
  if (*at_ == '0')
    ++at_;
  else
    skip_digits();
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (!skip_digits()) return false;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!skip_digits()) return false;
  }
  return true;
}

std::optional<std::string> unescape_json(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    if (raw[++i] != 'u') {
      out += kTo[kFrom.find(raw[i])];
      continue;
    }
    uint32_t code = code_unit(raw.substr(i + 1));
    i += 4;
    if (code >= 0xD800 && code < 0xE000) {
      if (code >= 0xDC00 || raw.substr(i + 1, 2) != "\\u") return std::nullopt;
      const uint32_t low = code_unit(raw.substr(i + 3));
      if (low < 0xDC00 || low >= 0xE000) return std::nullopt;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      i += 6;
    }
    append_utf8(out, code);
  }
  return out;
}

}  // namespace postrider::base
