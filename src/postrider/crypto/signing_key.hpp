// Secrets of endpoints: their outside text forms, and the decoded form that signs.
//
// The form of a secret depends on the scheme:
//   standard            whsec_<base64 of 24 to 64 bytes>; the bytes are the HMAC key
//   standard_ed25519    whsk_<base64 of seed, or of seed and public key>; customers are given whpk_<base64>
//   hex_v1, sha256      16 to 256 printable characters, used as they are
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "postrider/base/result.hpp"
#include "postrider/crypto/ed25519.hpp"

namespace postrider::crypto {

enum class SignatureScheme { standard, standard_ed25519, hex_v1, sha256 };

std::string_view label(SignatureScheme scheme);  // as in the API: "standard-ed25519"
std::optional<SignatureScheme> parse_signature_scheme(std::string_view text);

// One secret, decoded once and used for many signatures.
class SigningKey {
 public:
  // The error is a sentence for the caller; it never repeats the secret.
  static base::Result<SigningKey, std::string> from_secret(SignatureScheme scheme, std::string_view secret);

  bool is_asymmetric() const { return std::holds_alternative<Ed25519Key>(material_); }
  const std::string& hmac_key() const { return std::get<std::string>(material_); }
  const Ed25519Key& ed25519() const { return std::get<Ed25519Key>(material_); }
  // "whpk_<base64>", what a receiver needs to verify; empty for the symmetric schemes.
  std::string public_text() const;

 private:
  explicit SigningKey(std::variant<std::string, Ed25519Key> material) : material_(std::move(material)) {}

  std::variant<std::string, Ed25519Key> material_;
};

// A new secret in its outside form. Always accepted by SigningKey::from_secret.
std::string generate_secret(SignatureScheme scheme);

// "whsec_MfKQ…aSw": enough to distinguish two secrets, and useless to an attacker.
std::string masked_secret(std::string_view secret);

}  // namespace postrider::crypto
