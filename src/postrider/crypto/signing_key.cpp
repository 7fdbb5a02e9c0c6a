#include "postrider/crypto/signing_key.hpp"

#include <algorithm>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/random.hpp"

namespace postrider::crypto {
namespace {

constexpr std::string_view kHmacPrefix = "whsec_";
constexpr std::string_view kPrivatePrefix = "whsk_";
constexpr std::string_view kPublicPrefix = "whpk_";
constexpr size_t kHmacKeyBytesMin = 24;
constexpr size_t kHmacKeyBytesMax = 64;
constexpr size_t kRawLengthMin = 16;
constexpr size_t kRawLengthMax = 256;
constexpr size_t kGeneratedBytes = 32;

using Decoded = base::Result<std::variant<std::string, Ed25519Key>, std::string>;

Decoded failure(std::string sentence) {
  return base::Failure{std::move(sentence)};
}

Decoded decode_hmac(std::string_view secret) {
  if (!secret.starts_with(kHmacPrefix))
    return failure("must begin with \"whsec_\", followed by 24 to 64 bytes in base64");
  std::optional<std::string> bytes = base::base64_decode(secret.substr(kHmacPrefix.size()));
  if (!bytes) return failure("must be valid base64 with padding after \"whsec_\"");
  if (bytes->size() < kHmacKeyBytesMin || bytes->size() > kHmacKeyBytesMax)
    return failure("must have 24 to 64 bytes after \"whsec_\" once decoded, and has " +
                   std::to_string(bytes->size()));
  return std::variant<std::string, Ed25519Key>(std::move(*bytes));
}

Decoded decode_ed25519(std::string_view secret) {
  if (secret.starts_with(kPublicPrefix))
    return failure("must be the private key (\"whsk_\"), not the public one");
  if (!secret.starts_with(kPrivatePrefix))
    return failure("must begin with \"whsk_\", followed by an Ed25519 private key in base64");
  const std::optional<std::string> bytes = base::base64_decode(secret.substr(kPrivatePrefix.size()));
  if (!bytes) return failure("must be valid base64 with padding after \"whsk_\"");
  const size_t pair_bytes = kEd25519SeedBytes + sizeof(Ed25519PublicKey);
  if (bytes->size() != kEd25519SeedBytes && bytes->size() != pair_bytes)
    return failure(
        "must have 32 bytes (seed) or 64 bytes (seed and public key) after \"whsk_\" once decoded, and "
        "has " +
        std::to_string(bytes->size()));
  std::optional<Ed25519Key> key = Ed25519Key::from_seed(bytes->substr(0, kEd25519SeedBytes));
  if (bytes->size() == pair_bytes && bytes->substr(kEd25519SeedBytes) != key->public_key().view())
    return failure("has a public key after \"whsk_\" that does not belong to its seed");
  return std::variant<std::string, Ed25519Key>(std::move(*key));
}

Decoded take_raw(std::string_view secret) {
  if (secret.size() < kRawLengthMin || secret.size() > kRawLengthMax)
    return failure("must have 16 to 256 characters, and has " + std::to_string(secret.size()));
  if (!std::ranges::all_of(secret, [](char c) { return c > ' ' && c < '\x7f'; }))
    return failure("must consist of printable ASCII characters without spaces");
  return std::variant<std::string, Ed25519Key>(std::string(secret));
}

Decoded decode(SignatureScheme scheme, std::string_view secret) {
  switch (scheme) {
    case SignatureScheme::standard:
      return decode_hmac(secret);
    case SignatureScheme::standard_ed25519:
      return decode_ed25519(secret);
    case SignatureScheme::hex_v1:
    case SignatureScheme::sha256:
      return take_raw(secret);
  }
  return failure("has an unknown signature scheme");
}

}  // namespace

std::string_view label(SignatureScheme scheme) {
  switch (scheme) {
    case SignatureScheme::standard:
      return "standard";
    case SignatureScheme::standard_ed25519:
      return "standard-ed25519";
    case SignatureScheme::hex_v1:
      return "hex-v1";
    case SignatureScheme::sha256:
      return "sha256";
  }
  return "";
}

std::optional<SignatureScheme> parse_signature_scheme(std::string_view text) {
  for (const auto scheme : {SignatureScheme::standard, SignatureScheme::standard_ed25519,
                            SignatureScheme::hex_v1, SignatureScheme::sha256})
    if (text == label(scheme)) return scheme;
  return std::nullopt;
}

base::Result<SigningKey, std::string> SigningKey::from_secret(SignatureScheme scheme,
                                                              std::string_view secret) {
  Decoded material = decode(scheme, secret);
  if (!material.ok()) return base::Failure{material.error()};
  return SigningKey(std::move(material).value());
}

std::string SigningKey::public_text() const {
  if (!is_asymmetric()) return "";
  return std::string(kPublicPrefix) + base::base64_encode(ed25519().public_key().view());
}

std::string generate_secret(SignatureScheme scheme) {
  const std::string bytes = random_bytes(kGeneratedBytes);
  switch (scheme) {
    case SignatureScheme::standard:
      return std::string(kHmacPrefix) + base::base64_encode(bytes);
    case SignatureScheme::standard_ed25519: {
      const std::optional<Ed25519Key> key = Ed25519Key::from_seed(bytes);
      return std::string(kPrivatePrefix) + base::base64_encode(bytes + std::string(key->public_key().view()));
    }
    case SignatureScheme::hex_v1:
    case SignatureScheme::sha256:
      return base::hex_encode(bytes);
  }
  return "";
}

std::string masked_secret(std::string_view secret) {
  std::string_view prefix;
  for (const std::string_view known : {kHmacPrefix, kPrivatePrefix, kPublicPrefix})
    if (secret.starts_with(known)) prefix = known;
  const std::string_view rest = secret.substr(prefix.size());
  std::string out(prefix);
  if (rest.size() < 24) return out + "\u2026";
  return out.append(rest.substr(0, 4)).append("\u2026").append(rest.substr(rest.size() - 4));
}

}  // namespace postrider::crypto
