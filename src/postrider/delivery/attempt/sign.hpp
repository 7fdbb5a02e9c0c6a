// Step "sign": the headers that prove the sender and the time of this body to a receiver.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/crypto/signing_key.hpp"

namespace postrider::delivery {

// The active secrets of one endpoint, decoded once per lane.
struct Signer {
  crypto::SignatureScheme scheme = crypto::SignatureScheme::standard;
  // The current one first, then, during the overlap of a rotation, older ones from the newest to the oldest.
  std::vector<crypto::SigningKey> keys;
};

struct SignInput {
  std::string_view event_id;     // outside form, "evt_…" or the publisher's own
  std::string_view delivery_id;  // outside form, "dlv_…"
  int64_t unix_seconds = 0;
  int attempt = 1;
  std::string_view body;
};

// Appends "name: value\r\n" lines: those of the scheme, webhook-attempt and webhook-delivery-id.
// `standard` schemes sign once per key; the hex schemes sign with the oldest key and, during an overlap, with
// the newest as x-webhook-signature-next. The signer must have a key. False: an id cannot be a header's
// value, and `head` is of no use. Allocates nothing but growth of `head` (Ed25519 also copies the body once).
[[nodiscard]] bool append_signature_headers(std::string& head, const Signer& signer, const SignInput& input);

}  // namespace postrider::delivery
