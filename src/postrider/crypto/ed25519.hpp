// Ed25519 signatures (RFC 8032).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "postrider/crypto/digest.hpp"

struct evp_pkey_st;

namespace postrider::crypto {

using Ed25519Signature = Bytes<64>;
using Ed25519PublicKey = Bytes<32>;
inline constexpr size_t kEd25519SeedBytes = 32;

class Ed25519Key {
 public:
  // Nothing unless the seed has 32 bytes.
  static std::optional<Ed25519Key> from_seed(std::string_view seed);

  Ed25519Signature sign(std::string_view message) const;
  const Ed25519PublicKey& public_key() const { return public_key_; }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  Ed25519Key(std::unique_ptr<evp_pkey_st, Free> key, const Ed25519PublicKey& public_key)
      : key_(std::move(key)), public_key_(public_key) {}

  std::unique_ptr<evp_pkey_st, Free> key_;
  Ed25519PublicKey public_key_;
};

// False also for keys and signatures of a wrong length.
bool ed25519_verify(std::string_view public_key, std::string_view message, std::string_view signature);

}  // namespace postrider::crypto
