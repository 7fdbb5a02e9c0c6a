// Secrets as callers give them, for every scheme; refusals never repeat them.
#include <string>

#include "fuzz.hpp"
#include "postrider/crypto/signing_key.hpp"

using namespace postrider::crypto;

void fuzz_one(std::string_view input) {
  for (const auto scheme : {SignatureScheme::standard, SignatureScheme::standard_ed25519,
                            SignatureScheme::hex_v1, SignatureScheme::sha256}) {
    const auto key = SigningKey::from_secret(scheme, input);
    if (key)
      CHECK(key->is_asymmetric() == (scheme == SignatureScheme::standard_ed25519));
    else if (input.size() >= 16)
      CHECK(key.error().find(input) == std::string::npos);
  }
  if (input.size() >= 24) CHECK(masked_secret(input).find(input.substr(8)) == std::string::npos);
}
