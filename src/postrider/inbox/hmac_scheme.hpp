// The signature scheme of a generic source; every part of it is configurable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"

namespace postrider::inbox {

enum class Hash { sha1, sha256, sha512 };
enum class SignatureEncoding { hex, base64 };
enum class KeyForm { raw, base64, hex };  // how the secret is written down

std::string_view label(Hash hash);
std::string_view label(SignatureEncoding encoding);
std::string_view label(KeyForm form);
std::optional<Hash> parse_hash(std::string_view text);
std::optional<SignatureEncoding> parse_encoding(std::string_view text);
std::optional<KeyForm> parse_key_form(std::string_view text);

struct HmacScheme {
  std::string header = "x-signature";  // lower case
  std::string prefix;                  // before the signature, such as sha256=
  std::string signed_text =
      "{body}";  // template: {body}, {timestamp}, {header:name}, and anything else as it is
  Hash hash = Hash::sha256;
  SignatureEncoding encoding = SignatureEncoding::hex;
  KeyForm key = KeyForm::raw;
  std::string timestamp_header;  // seconds since 1970; empty: there is none

  bool can_verify() const { return !header.empty(); }
  bool operator==(const HmacScheme&) const = default;
};

struct TemplatePiece {
  enum class Kind { literal, body, timestamp, header };
  Kind kind;
  std::string text;  // the literal, or the header's name in lower case
};

// The error is a sentence for the author of the template.
base::Result<std::vector<TemplatePiece>, std::string> parse_template(std::string_view text);

std::string to_json(const HmacScheme& scheme);
// As to_json() wrote it. Anything else, as a newer version or a hand may have left it, is a scheme without a
// header: it can be shown and replaced, but nothing can be verified by it.
HmacScheme hmac_scheme_from_json(std::string_view json);

// The bytes of a secret; the error is a sentence that does not repeat it.
base::Result<std::string, std::string> decode_key(KeyForm form, std::string_view secret);

}  // namespace postrider::inbox
