// Verifies the signature of an inbound webhook. Pure: no clock, no I/O. Signatures are compared in constant
// time, in the form in which they are sent, so that no other encoding of the same bytes passes.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/http/request.hpp"
#include "postrider/inbox/hmac_scheme.hpp"
#include "postrider/inbox/provider.hpp"

namespace postrider::inbox {

// The received request. Views live as long as the request.
struct Arrival {
  std::string_view body;
  std::span<const http::Field> fields;
  std::string public_url;  // as the sender spells it: the configured public URL, then path and query
  base::Timestamp now{};

  std::optional<std::string_view> header(std::string_view name) const;  // the first of that name, any case
};

enum class RejectReason {
  missing_header,
  malformed_header,
  timestamp_old,
  timestamp_future,
  signature_mismatch,
  no_secret,       // none is active, or none can be decrypted
  malformed_body,  // not what the scheme needs, or not text
  body_too_large,
  unknown_source,
};
std::string_view label(RejectReason reason);

struct InboundRejection {
  RejectReason reason;
  std::string detail;  // for operators, never for the sender: "timestamp 412 s old"
};

struct VerifyKey {
  std::string bytes;
  bool is_public = false;  // Ed25519, of Standard Webhooks
};

struct Verification {
  Provider provider = Provider::standard;
  HmacScheme scheme;                         // provider hmac
  std::vector<TemplatePiece> signed_pieces;  // the same, its template parsed
  std::chrono::seconds tolerance{300};       // both ways, where the scheme has a timestamp
};

// No value: it is genuine.
std::optional<InboundRejection> verify(const Verification& how, std::span<const VerifyKey> keys,
                                       const Arrival& arrival);

// The key in a secret as the provider writes it; the error is a sentence that does not repeat it.
base::Result<VerifyKey, std::string> key_of_secret(Provider provider, const HmacScheme& scheme,
                                                   std::string_view secret);

}  // namespace postrider::inbox
