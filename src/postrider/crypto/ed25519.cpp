#include "postrider/crypto/ed25519.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "postrider/crypto/openssl_error.hpp"

namespace postrider::crypto {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

void Ed25519Key::Free::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

std::optional<Ed25519Key> Ed25519Key::from_seed(std::string_view seed) {
  if (seed.size() != kEd25519SeedBytes) return std::nullopt;
  std::unique_ptr<evp_pkey_st, Free> key(
      EVP_PKEY_new_raw_private_key_ex(nullptr, "ED25519", nullptr, data_of(seed), seed.size()));
  require(key != nullptr, "load an Ed25519 key");
  Ed25519PublicKey public_key;
  size_t length = public_key.size();
  require(EVP_PKEY_get_raw_public_key(key.get(), public_key.data(), &length) == 1,
          "derive an Ed25519 public key");
  return Ed25519Key(std::move(key), public_key);
}

Ed25519Signature Ed25519Key::sign(std::string_view message) const {
  const Context context(EVP_MD_CTX_new());
  Ed25519Signature signature;
  size_t length = signature.size();
  const bool done =
      context != nullptr && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.data(), &length, data_of(message), message.size()) == 1;
  require(done && length == signature.size(), "sign with Ed25519");
  return signature;
}

bool ed25519_verify(std::string_view public_key, std::string_view message, std::string_view signature) {
  if (public_key.size() != Ed25519PublicKey{}.size() || signature.size() != Ed25519Signature{}.size())
    return false;
  struct FreeKey {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      EVP_PKEY_new_raw_public_key_ex(nullptr, "ED25519", nullptr, data_of(public_key), public_key.size()));
  const Context context(EVP_MD_CTX_new());
  require(key != nullptr && context != nullptr, "load an Ed25519 public key");
  require(EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1,
          "verify with Ed25519");
  const bool is_good = EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(message),
                                        message.size()) == 1;
  if (!is_good) ERR_clear_error();
  return is_good;
}

}  // namespace postrider::crypto
