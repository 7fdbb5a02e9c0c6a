#include "postrider/inbox/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/crypto/ed25519.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/inbox/twilio.hpp"

namespace postrider::inbox {

namespace {

constexpr std::array<std::string_view, 9> kReasons = {
    "missing_header", "malformed_header", "timestamp_old",  "timestamp_future", "signature_mismatch",
    "no_secret",      "malformed_body",   "body_too_large", "unknown_source"};
constexpr size_t kSignaturesMax = 16;  // in one header; each is compared with each key
constexpr size_t kRawSecretMin = 8, kRawSecretMax = 512;

using Checked = std::optional<Rejection>;
using Signatures = std::vector<std::string_view>;

Rejection missing(std::string_view header) {
  return {RejectReason::missing_header, fmt::format("there is no {} header", header)};
}

Rejection malformed(std::string_view header, std::string_view what) {
  return {RejectReason::malformed_header, fmt::format("{} {}", header, what)};
}

Rejection mismatch(size_t keys) {
  if (keys == 1) return {RejectReason::signature_mismatch, "the active secret does not match"};
  return {RejectReason::signature_mismatch, fmt::format("none of {} active secrets matches", keys)};
}

Checked check_time(std::string_view header, std::string_view text, const Verification& how,
                   const Arrival& arrival) {
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || text.size() > 12 || error != std::errc() || end != text.data() + text.size() ||
      seconds < 0)
    return malformed(header, "is not a time in seconds");
  const auto now = std::chrono::floor<std::chrono::seconds>(arrival.now).time_since_epoch().count();
  if (now - seconds > how.tolerance.count())
    return Rejection{RejectReason::timestamp_old, fmt::format("timestamp {} s old", now - seconds)};
  if (seconds - now > how.tolerance.count())
    return Rejection{RejectReason::timestamp_future,
                     fmt::format("timestamp {} s in the future", seconds - now)};
  return std::nullopt;
}

// Every signature against every key: how long it takes says nothing about which one fits.
template <class Expected>
Checked compare(std::span<const VerifyKey> keys, const Signatures& given, Expected expected) {
  bool matches = false;
  for (const VerifyKey& key : keys) {
    const std::string wanted = expected(key.bytes);
    for (const std::string_view signature : given) matches |= crypto::constant_time_equal(signature, wanted);
  }
  if (matches) return std::nullopt;
  return mismatch(keys.size());
}

// The parts of a list that begin with the prefix, without it.
Signatures with_prefix(std::string_view list, char separator, std::string_view prefix) {
  Signatures found;
  while (!list.empty() && found.size() < kSignaturesMax) {
    const size_t end = std::min(list.find(separator), list.size());
    const std::string_view part = list.substr(0, end);
    if (part.starts_with(prefix)) found.push_back(part.substr(prefix.size()));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return found;
}

struct StandardHeaders {
  std::string_view id, timestamp, signature;
};

Checked check_standard(const StandardHeaders& headers, std::span<const VerifyKey> keys,
                       const Arrival& arrival) {
  const Signatures symmetric = with_prefix(headers.signature, ' ', "v1,");
  const Signatures asymmetric = with_prefix(headers.signature, ' ', "v1a,");
  if (symmetric.empty() && asymmetric.empty()) return malformed("the signature", "has no v1 entry");
  bool matches = false;
  for (const VerifyKey& key : keys) {
    if (!key.is_public) {
      const auto digest =
          crypto::hmac_sha256(key.bytes, {headers.id, ".", headers.timestamp, ".", arrival.body});
      const std::string wanted = base::base64_encode(digest.view());
      for (const auto given : symmetric) matches |= crypto::constant_time_equal(given, wanted);
      continue;
    }
    const std::string text = fmt::format("{}.{}.{}", headers.id, headers.timestamp, arrival.body);
    for (const auto given : asymmetric) {
      const auto bytes = base::base64_decode(given);
      matches |= bytes && crypto::ed25519_verify(key.bytes, text, *bytes);
    }
  }
  if (matches) return std::nullopt;
  return mismatch(keys.size());
}

Checked verify_standard(const Verification& how, std::span<const VerifyKey> keys, const Arrival& arrival) {
  // Svix sends both families; either may be missing behind a proxy.
  const bool is_svix = how.provider == Provider::svix && arrival.header("svix-signature");
  const std::string_view family = is_svix ? "svix-" : "webhook-";
  std::array<std::string_view, 3> values;
  constexpr std::array<std::string_view, 3> names = {"id", "timestamp", "signature"};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = std::string(family).append(names[i]);
    const auto value = arrival.header(name);
    if (!value || value->empty()) return missing(name);
    values[i] = *value;
  }
  if (auto late = check_time(std::string(family) + "timestamp", values[1], how, arrival)) return late;
  return check_standard({values[0], values[1], values[2]}, keys, arrival);
}

Checked verify_stripe(const Verification& how, std::span<const VerifyKey> keys, const Arrival& arrival) {
  const auto header = arrival.header("stripe-signature");
  if (!header) return missing("stripe-signature");
  const Signatures times = with_prefix(*header, ',', "t=");
  const Signatures given = with_prefix(*header, ',', "v1=");
  if (times.size() != 1) return malformed("stripe-signature", "has no single t=");
  if (given.empty()) return malformed("stripe-signature", "has no v1=");
  if (auto late = check_time("stripe-signature", times[0], how, arrival)) return late;
  return compare(keys, given, [&](const std::string& key) {
    return base::hex_encode(crypto::hmac_sha256(key, {times[0], ".", arrival.body}).view());
  });
}

Checked verify_github(std::span<const VerifyKey> keys, const Arrival& arrival) {
  const auto header = arrival.header("x-hub-signature-256");
  if (!header) return missing("x-hub-signature-256");
  if (!header->starts_with("sha256=")) return malformed("x-hub-signature-256", "does not begin with sha256=");
  return compare(keys, {header->substr(7)}, [&](const std::string& key) {
    return base::hex_encode(crypto::hmac_sha256(key, {arrival.body}).view());
  });
}

Checked verify_shopify(std::span<const VerifyKey> keys, const Arrival& arrival) {
  const auto header = arrival.header("x-shopify-hmac-sha256");
  if (!header) return missing("x-shopify-hmac-sha256");
  return compare(keys, {*header}, [&](const std::string& key) {
    return base::base64_encode(crypto::hmac_sha256(key, {arrival.body}).view());
  });
}

Checked verify_slack(const Verification& how, std::span<const VerifyKey> keys, const Arrival& arrival) {
  const auto header = arrival.header("x-slack-signature");
  if (!header) return missing("x-slack-signature");
  const auto timestamp = arrival.header("x-slack-request-timestamp");
  if (!timestamp) return missing("x-slack-request-timestamp");
  if (!header->starts_with("v0=")) return malformed("x-slack-signature", "does not begin with v0=");
  if (auto late = check_time("x-slack-request-timestamp", *timestamp, how, arrival)) return late;
  return compare(keys, {header->substr(3)}, [&](const std::string& key) {
    return base::hex_encode(crypto::hmac_sha256(key, {"v0:", *timestamp, ":", arrival.body}).view());
  });
}

std::string keyed_digest(Hash hash, std::string_view key, std::string_view text) {
  switch (hash) {
    case Hash::sha1:
      return std::string(crypto::hmac_sha1(key, {text}).view());
    case Hash::sha512:
      return std::string(crypto::hmac_sha512(key, {text}).view());
    case Hash::sha256:
      break;
  }
  return std::string(crypto::hmac_sha256(key, {text}).view());
}

Checked verify_hmac(const Verification& how, std::span<const VerifyKey> keys, const Arrival& arrival) {
  const HmacScheme& scheme = how.scheme;
  const auto header = arrival.header(scheme.header);
  if (!header) return missing(scheme.header);
  if (!header->starts_with(scheme.prefix)) return malformed(scheme.header, "does not begin with the prefix");
  std::string_view timestamp;
  if (!scheme.timestamp_header.empty()) {
    const auto value = arrival.header(scheme.timestamp_header);
    if (!value) return missing(scheme.timestamp_header);
    timestamp = *value;
    if (auto late = check_time(scheme.timestamp_header, timestamp, how, arrival)) return late;
  }
  std::string text;
  for (const TemplatePiece& piece : how.signed_pieces) {
    if (piece.kind == TemplatePiece::Kind::literal) text += piece.text;
    if (piece.kind == TemplatePiece::Kind::body) text += arrival.body;
    if (piece.kind == TemplatePiece::Kind::timestamp) text += timestamp;
    if (piece.kind != TemplatePiece::Kind::header) continue;
    const auto value = arrival.header(piece.text);
    if (!value) return missing(piece.text);
    text += *value;
  }
  return compare(keys, {header->substr(scheme.prefix.size())}, [&](const std::string& key) {
    const std::string digest = keyed_digest(scheme.hash, key, text);
    return scheme.encoding == SignatureEncoding::hex ? base::hex_encode(digest) : base::base64_encode(digest);
  });
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

std::optional<Rejection> verify(const Verification& how, std::span<const VerifyKey> keys,
                                const Arrival& arrival) {
  if (keys.empty()) return Rejection{RejectReason::no_secret, "the source has no secret that can be used"};
  switch (how.provider) {
    case Provider::standard:
    case Provider::svix:
      return verify_standard(how, keys, arrival);
    case Provider::stripe:
      return verify_stripe(how, keys, arrival);
    case Provider::github:
      return verify_github(keys, arrival);
    case Provider::shopify:
      return verify_shopify(keys, arrival);
    case Provider::slack:
      return verify_slack(how, keys, arrival);
    case Provider::twilio:
      return verify_twilio(keys, arrival);
    case Provider::hmac:
      return verify_hmac(how, keys, arrival);
  }
  return Rejection{RejectReason::no_secret, "the provider is not known"};
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
