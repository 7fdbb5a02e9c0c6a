// Reads JSON text in one pass without building anything: it checks every byte against RFC 8259 and returns
// the raw bytes of each value, so that a payload can be stored exactly as it was sent.
//
// Why not simdjson: its DOM rejects numbers beyond 64 bits and lone surrogate escapes, which are valid JSON
// and must pass unchanged, and it does not report the position of a value. (UTF-8 is checked by simdjson.)
//
//   JsonScanner json(text, 64);
//   json.begin_object();
//   while (json.next_member(key)) json.value(raw);
//   if (!json.finish()) … json.error()
//
// After an error every call returns false.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::base {

class JsonScanner {
 public:
  static constexpr int kDepthMax = 64;

  // Containers may be nested `depth_max` levels deep, at most kDepthMax.
  explicit JsonScanner(std::string_view text, int depth_max = kDepthMax);

  bool begin_object();
  // The raw bytes between the key's quotes; false after the last member, which ends the object.
  bool next_member(std::string_view& key);
  bool begin_array();
  bool next_element();  // false after the last element, which ends the array
  // One whole value of any kind.
  bool value(std::string_view& raw);
  // The first byte of the value that comes next; 0 at the end of the text.
  char peek();
  // Nothing but white space is left, and there was no error.
  bool finish();

  bool has_failed() const { return error_ != nullptr; }
  // A sentence without its full stop: "invalid JSON at byte 17: expected a value".
  std::string error() const;

 private:
  bool begin(char bracket);
  bool next(char bracket);
  bool skip_value();
  bool skip_key(std::string_view* key);
  bool skip_scalar(char first);
  bool skip_string();
  bool skip_escape();
  bool skip_number();
  bool skip_digits();
  bool skip_word(std::string_view word);
  char token();
  bool fail(const char* what);

  const char* begin_;
  const char* at_;
  const char* end_;
  int depth_max_;
  int depth_ = 0;  // containers entered by begin_object() and begin_array()
  bool is_first_ = false;
  const char* error_ = nullptr;
};

// The text that a string's raw bytes stand for; nothing when it has a lone surrogate, which is not a
// character.
std::optional<std::string> unescape_json(std::string_view raw);

}  // namespace postrider::base
