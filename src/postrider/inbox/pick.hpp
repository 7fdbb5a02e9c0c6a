// Values picked out of a message: by a header's name, or by a JSON pointer into its body.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

// The parameters of a form body; nothing when the body is none.
std::optional<std::vector<http::Parameter>> form_of(const Arrival& arrival);

// A message whose body is parsed once, when it is first asked for.
class Picker {
 public:
  explicit Picker(const Arrival& arrival);
  ~Picker();
  Picker(const Picker&) = delete;
  Picker& operator=(const Picker&) = delete;

  // `where` begins with a slash: a JSON pointer (of a form: /Name); otherwise it is a header's name. Strings,
  // numbers and booleans are values; no value for other types and for empty strings.
  std::optional<std::string> at(std::string_view where);
  // The body is JSON, or a form.
  bool is_json();
  // A form as a JSON object, repeated names as arrays; nothing when the body is no form.
  std::optional<std::string> form_as_json();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "/a/b" or a header's name: 1 to 128 printable characters without spaces.
bool is_where(std::string_view text);

constexpr size_t kKeyBytesMax = 255;

// Keys that are made, not given.
inline constexpr std::string_view content_key_prefix = "content:", hash_key_prefix = "sha256:";

// Keys that fit the index: keys that are too long, have a NUL or look like a made one are replaced by their
// hash.
std::string storable_key(std::string value);

}  // namespace postrider::inbox
