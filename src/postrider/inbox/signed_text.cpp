#include "postrider/inbox/signed_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postrider/inbox/twilio.hpp"

namespace postrider::inbox {

namespace {

using ReadClaim = base::Result<SignatureClaim, InboundRejection>;
using Signatures = std::vector<std::string_view>;

// Senders sign with each of their active secrets. Comparing an HMAC is cheap. An Ed25519 signature costs a
// pass over the body for each of the source's keys, and nothing is authenticated yet.
constexpr size_t kHmacsMax = 16;
constexpr size_t kEd25519sMax = 4;

base::Failure<InboundRejection> missing(std::string_view header) {
  return base::Failure{
      InboundRejection{RejectReason::missing_header, fmt::format("there is no {} header", header)}};
}

base::Failure<InboundRejection> malformed(std::string_view header, std::string_view what) {
  return base::Failure{InboundRejection{RejectReason::malformed_header, fmt::format("{} {}", header, what)}};
}

// The parts of a list that begin with the prefix, without it; at most one more than `count_max`.
Signatures with_prefix(std::string_view list, char separator, std::string_view prefix, size_t count_max) {
  Signatures found;
  while (!list.empty() && found.size() <= count_max) {
    const size_t end = std::min(list.find(separator), list.size());
    const std::string_view part = list.substr(0, end);
    if (part.starts_with(prefix)) found.push_back(part.substr(prefix.size()));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return found;
}

ReadClaim standard_claim(Provider provider, const Arrival& arrival) {
  const std::string family(standard_family(provider, arrival));
  const auto id = arrival.header(family + "id");
  if (!id || id->empty()) return missing(family + "id");
  const auto timestamp = arrival.header(family + "timestamp");
  if (!timestamp || timestamp->empty()) return missing(family + "timestamp");
  const auto signature = arrival.header(family + "signature");
  if (!signature || signature->empty()) return missing(family + "signature");
  SignatureClaim claim{.hmacs = with_prefix(*signature, ' ', "v1,", kHmacsMax),
                       .ed25519s = with_prefix(*signature, ' ', "v1a,", kEd25519sMax),
                       .time_header = family + "timestamp",
                       .timestamp = *timestamp};
  if (claim.hmacs.empty() && claim.ed25519s.empty()) return malformed("the signature", "has no v1 entry");
  if (claim.hmacs.size() > kHmacsMax)
    return malformed("the signature", fmt::format("has more than {} v1 entries", kHmacsMax));
  if (claim.ed25519s.size() > kEd25519sMax)
    return malformed("the signature", fmt::format("has more than {} v1a entries", kEd25519sMax));
  return claim;
}

ReadClaim stripe_claim(const Arrival& arrival) {
  constexpr std::string_view name = "stripe-signature";
  const auto header = arrival.header(name);
  if (!header) return missing(name);
  const Signatures times = with_prefix(*header, ',', "t=", 1);
  if (times.size() != 1) return malformed(name, "has no single t=");
  SignatureClaim claim{.hmacs = with_prefix(*header, ',', "v1=", kHmacsMax),
                       .ed25519s = {},
                       .time_header = std::string(name),
                       .timestamp = times[0]};
  if (claim.hmacs.empty()) return malformed(name, "has no v1=");
  if (claim.hmacs.size() > kHmacsMax)
    return malformed(name, fmt::format("has more than {} v1 entries", kHmacsMax));
  return claim;
}

// One header with one signature after a prefix; `time_header` is empty where the scheme has no timestamp.
ReadClaim plain_claim(const Arrival& arrival, std::string_view name, std::string_view prefix,
                      std::string time_header = {}) {
  const auto header = arrival.header(name);
  if (!header) return missing(name);
  if (!header->starts_with(prefix)) return malformed(name, fmt::format("does not begin with {}", prefix));
  SignatureClaim claim{.hmacs = {header->substr(prefix.size())}, .ed25519s = {}};
  if (time_header.empty()) return claim;
  const auto timestamp = arrival.header(time_header);
  if (!timestamp) return missing(time_header);
  claim.timestamp = *timestamp;
  claim.time_header = std::move(time_header);
  return claim;
}

base::Result<SignedText, InboundRejection> templated(const Verification& how, const SignatureClaim& claim,
                                                     const Arrival& arrival) {
  SignedText text;
  for (const TemplatePiece& piece : how.signed_pieces) {
    if (piece.kind == TemplatePiece::Kind::literal) text.head += piece.text;
    if (piece.kind == TemplatePiece::Kind::body) text.head += arrival.body;
    if (piece.kind == TemplatePiece::Kind::timestamp) text.head += claim.timestamp;
    if (piece.kind != TemplatePiece::Kind::header) continue;
    const auto value = arrival.header(piece.text);
    if (!value) return missing(piece.text);
    text.head += *value;
  }
  return text;
}

}  // namespace

std::string_view standard_family(Provider provider, const Arrival& arrival) {
  // Svix sends both families; either may be missing behind a proxy.
  return provider == Provider::svix && arrival.header("svix-signature") ? "svix-" : "webhook-";
}

ReadClaim read_claim(const Verification& how, const Arrival& arrival) {
  switch (how.provider) {
    case Provider::standard:
    case Provider::svix:
      return standard_claim(how.provider, arrival);
    case Provider::stripe:
      return stripe_claim(arrival);
    case Provider::github:
      return plain_claim(arrival, "x-hub-signature-256", "sha256=");
    case Provider::shopify:
      return plain_claim(arrival, "x-shopify-hmac-sha256", "");
    case Provider::slack:
      return plain_claim(arrival, "x-slack-signature", "v0=", "x-slack-request-timestamp");
    case Provider::hmac:
      return plain_claim(arrival, how.scheme.header, how.scheme.prefix, how.scheme.timestamp_header);
    case Provider::twilio:
      break;  // verify_twilio() reads its own
  }
  return SignatureClaim{};
}

base::Result<SignedText, InboundRejection> signed_text(const Verification& how, const SignatureClaim& claim,
                                                       const Arrival& arrival) {
  switch (how.provider) {
    case Provider::standard:
    case Provider::svix: {
      const std::string id(standard_family(how.provider, arrival));
      return SignedText{fmt::format("{}.{}.", arrival.header(id + "id").value_or(""), claim.timestamp),
                        arrival.body};
    }
    case Provider::stripe:
      return SignedText{fmt::format("{}.", claim.timestamp), arrival.body};
    case Provider::slack:
      return SignedText{fmt::format("v0:{}:", claim.timestamp), arrival.body};
    case Provider::twilio:
      return SignedText{arrival.public_url + twilio_parameters(arrival).value_or(""), ""};
    case Provider::hmac:
      return templated(how, claim, arrival);
    case Provider::github:
    case Provider::shopify:
      break;
  }
  return SignedText{"", arrival.body};
}

crypto::Digest256 content_digest(const Verification& how, const Arrival& arrival) {
  const auto claim = read_claim(how, arrival);
  const auto text = signed_text(how, claim ? *claim : SignatureClaim{}, arrival);
  if (!text) return crypto::sha256(arrival.body);
  return crypto::sha256({text->head, text->body});
}

}  // namespace postrider::inbox
