// Secrets from callers, for every scheme; error messages never repeat them.
#include <string>

#include "fuzz.hpp"
#include "postrider/crypto/signing_key.hpp"

using namespace postrider::crypto;

namespace {

constexpr std::string_view kMark = "Zq7~not-in-any-refusal~9";  // the input itself may be words of one

void check_refusal(SignatureScheme scheme, const std::string& secret) {
  const auto key = SigningKey::from_secret(scheme, secret);
  if (!key) CHECK(key.error().find(kMark) == std::string::npos);
}

}  // namespace

void fuzz_one(std::string_view input) {
  for (const auto scheme : {SignatureScheme::standard, SignatureScheme::standard_ed25519,
                            SignatureScheme::hex_v1, SignatureScheme::sha256}) {
    const auto key = SigningKey::from_secret(scheme, input);
    if (key) CHECK(key->is_asymmetric() == (scheme == SignatureScheme::standard_ed25519));
    check_refusal(scheme, std::string(input).append(kMark));
    check_refusal(scheme, std::string(kMark).append(input));
  }
  if (input.size() >= 24) CHECK(masked_secret(input).find(input.substr(8)) == std::string::npos);
}
