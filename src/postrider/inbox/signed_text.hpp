// The signed text of each scheme: one definition, for verification and for deduplication by content. Pure.
// Private to inbox/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

// The values in the headers, before any of them is verified. Views into the arrival.
struct SignatureClaim {
  std::vector<std::string_view> hmacs;     // without their prefixes
  std::vector<std::string_view> ed25519s;  // Standard Webhooks v1a
  std::string time_header = {};            // empty: the scheme has no timestamp
  std::string_view timestamp = {};
};

// Form only: headers that are missing, malformed or have too many signatures. Not for Twilio.
base::Result<SignatureClaim, InboundRejection> read_claim(const Verification& how, const Arrival& arrival);

// The signed bytes are the head followed by the body.
struct SignedText {
  std::string head;
  std::string_view body;  // empty where the scheme signs the body as part of the head, or not at all
};
base::Result<SignedText, InboundRejection> signed_text(const Verification& how, const SignatureClaim& claim,
                                                       const Arrival& arrival);

// The SHA-256 of what the sender signed, of a verified arrival. A recorded request keeps it whatever is
// changed in the rest of it, and so does the same message signed with another secret.
crypto::Digest256 content_digest(const Verification& how, const Arrival& arrival);

// Standard Webhooks and Svix: which headers are signed, "svix-" or "webhook-".
std::string_view standard_family(Provider provider, const Arrival& arrival);

}  // namespace postrider::inbox
