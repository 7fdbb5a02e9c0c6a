#include "postrider/inbox/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/inbox/signed_text.hpp"
#include "postrider/inbox/twilio.hpp"

namespace postrider::inbox {

namespace {

constexpr std::array<std::string_view, 9> kReasons = {
    "missing_header", "malformed_header", "timestamp_old",  "timestamp_future", "signature_mismatch",
    "no_secret",      "malformed_body",   "body_too_large", "unknown_source"};
constexpr size_t kRawSecretMin = 8, kRawSecretMax = 512;

using Checked = std::optional<InboundRejection>;

InboundRejection mismatch(size_t keys) {
  if (keys == 1) return {RejectReason::signature_mismatch, "the active secret does not match"};
  return {RejectReason::signature_mismatch, fmt::format("none of {} active secrets matches", keys)};
}

Checked check_time(const SignatureClaim& claim, const Verification& how, const Arrival& arrival) {
  const std::string_view text = claim.timestamp;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || text.size() > 12 || error != std::errc() || end != text.data() + text.size() ||
      seconds < 0)
    return InboundRejection{RejectReason::malformed_header, claim.time_header + " is not a time in seconds"};
  const auto now = std::chrono::floor<std::chrono::seconds>(arrival.now).time_since_epoch().count();
  if (now - seconds > how.tolerance.count())
    return InboundRejection{RejectReason::timestamp_old, fmt::format("timestamp {} s old", now - seconds)};
  if (seconds - now > how.tolerance.count())
    return InboundRejection{RejectReason::timestamp_future,
                            fmt::format("timestamp {} s in the future", seconds - now)};
  return std::nullopt;
}

// The computation and encoding of an HMAC.
struct MacForm {
  Hash hash = Hash::sha256;
  SignatureEncoding encoding = SignatureEncoding::hex;

  size_t encoded_bytes() const {
    const size_t bytes = hash == Hash::sha1 ? 20 : hash == Hash::sha256 ? 32 : 64;
    return encoding == SignatureEncoding::hex ? 2 * bytes : (bytes + 2) / 3 * 4;
  }
  std::string encode(std::string_view digest) const {
    return encoding == SignatureEncoding::hex ? base::hex_encode(digest) : base::base64_encode(digest);
  }
  std::string sign(std::string_view key, const SignedText& text) const {
    switch (hash) {
      case Hash::sha1:
        return encode(crypto::hmac_sha1(key, {text.head, text.body}).view());
      case Hash::sha512:
        return encode(crypto::hmac_sha512(key, {text.head, text.body}).view());
      case Hash::sha256:
        break;
    }
    return encode(crypto::hmac_sha256(key, {text.head, text.body}).view());
  }
};

MacForm mac_form(const Verification& how) {
  switch (how.provider) {
    case Provider::hmac:
      return {how.scheme.hash, how.scheme.encoding};
    case Provider::standard:
    case Provider::svix:
    case Provider::shopify:
      return {Hash::sha256, SignatureEncoding::base64};
    default:
      return {};
  }
}

// Leaves what can be a signature at all. Returns the Ed25519 ones as bytes.
std::vector<std::string> keep_well_formed(SignatureClaim& claim, const MacForm& form) {
  std::erase_if(claim.hmacs, [&](std::string_view given) { return given.size() != form.encoded_bytes(); });
  std::vector<std::string> ed25519s;
  for (const std::string_view given : claim.ed25519s) {
    auto bytes = base::base64_decode(given);
    if (bytes && bytes->size() == sizeof(crypto::Ed25519Signature)) ed25519s.push_back(std::move(*bytes));
  }
  return ed25519s;
}

// Every signature against every key: how long it takes says nothing about which one matches.
bool matches_any(std::span<const VerifyKey> keys, const SignatureClaim& claim, const MacForm& form,
                 const SignedText& text) {
  bool matches = false;
  for (const VerifyKey& key : keys) {
    if (key.is_public || claim.hmacs.empty()) continue;
    const std::string wanted = form.sign(key.bytes, text);
    for (const auto given : claim.hmacs) matches |= crypto::constant_time_equal(given, wanted);
  }
  return matches;
}

bool matches_any_ed25519(std::span<const VerifyKey> keys, std::span<const std::string> given,
                         const SignedText& text) {
  const bool has_key = std::ranges::any_of(keys, [](const VerifyKey& key) { return key.is_public; });
  if (!has_key || given.empty()) return false;
  const std::string whole = text.head + std::string(text.body);
  bool matches = false;
  for (const VerifyKey& key : keys)
    for (const std::string& signature : given)
      matches |= key.is_public && crypto::ed25519_verify(key.bytes, whole, signature);
  return matches;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::optional<std::string_view> Arrival::header(std::string_view name) const {
  for (const http::Field& field : fields)
    if (equals_ignoring_case(field.name, name)) return field.value;
  return std::nullopt;
}

std::string_view label(RejectReason reason) {
  return kReasons[static_cast<size_t>(reason)];
}

std::optional<InboundRejection> verify(const Verification& how, std::span<const VerifyKey> keys,
                                       const Arrival& arrival) {
  if (keys.empty())
    return InboundRejection{RejectReason::no_secret, "the source has no secret that can be used"};
  if (how.provider == Provider::twilio) return verify_twilio(keys, arrival);
  // Cheap checks come first, because the sender is not authenticated yet.
  auto claim = read_claim(how, arrival);
  if (!claim) return claim.error();
  if (!claim->time_header.empty())
    if (auto late = check_time(*claim, how, arrival)) return late;
  const MacForm form = mac_form(how);
  const std::vector<std::string> ed25519s = keep_well_formed(*claim, form);
  if (claim->hmacs.empty() && ed25519s.empty()) return mismatch(keys.size());
  const auto text = signed_text(how, *claim, arrival);
  if (!text) return text.error();
  if (matches_any(keys, *claim, form, *text) || matches_any_ed25519(keys, ed25519s, *text))
    return std::nullopt;
  return mismatch(keys.size());
}

base::Result<VerifyKey, std::string> key_of_secret(Provider provider, const HmacScheme& scheme,
                                                   std::string_view secret) {
  if (provider == Provider::standard || provider == Provider::svix) {
    if (secret.starts_with("whpk_")) {
      auto bytes = base::base64_decode(secret.substr(5));
      if (!bytes || bytes->size() != sizeof(crypto::Ed25519PublicKey))
        return base::Failure{std::string("is not whpk_ followed by the base64 of 32 bytes")};
      return VerifyKey{std::move(*bytes), true};
    }
    const auto key = crypto::SigningKey::from_secret(crypto::SignatureScheme::standard, secret);
    if (!key) return base::Failure{key.error()};
    return VerifyKey{key->hmac_key(), false};
  }
  if (secret.size() < kRawSecretMin || secret.size() > kRawSecretMax)
    return base::Failure{fmt::format("must have {} to {} characters", kRawSecretMin, kRawSecretMax)};
  auto bytes = decode_key(provider == Provider::hmac ? scheme.key : KeyForm::raw, secret);
  if (!bytes) return base::Failure{bytes.error()};
  return VerifyKey{std::move(*bytes), false};
}

}  // namespace postrider::inbox
