#include "postrider/crypto/hkdf.hpp"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>

#include "postrider/base/check.hpp"
#include "postrider/crypto/openssl_error.hpp"

namespace postrider::crypto {
namespace {

constexpr size_t kOutputBytesMax = size_t{255} * 32;

struct FreeKdf {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};
using Kdf = std::unique_ptr<EVP_KDF_CTX, FreeKdf>;

OSSL_PARAM octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

void hkdf_sha256(const HkdfInput& input, std::span<uint8_t> out) {
  CHECK(out.size() <= kOutputBytesMax);
  static EVP_KDF* const algorithm = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  require(algorithm != nullptr, "fetch HKDF");
  const Kdf kdf(EVP_KDF_CTX_new(algorithm));
  char digest[] = "SHA256";
  // OpenSSL takes a null salt or info for a parameter that was not set, so an empty one is left out.
  OSSL_PARAM params[5];
  size_t count = 0;
  params[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
  params[count++] = octets(OSSL_KDF_PARAM_KEY, input.key);
  if (!input.salt.empty()) params[count++] = octets(OSSL_KDF_PARAM_SALT, input.salt);
  if (!input.info.empty()) params[count++] = octets(OSSL_KDF_PARAM_INFO, input.info);
  params[count] = OSSL_PARAM_construct_end();
  require(kdf != nullptr && EVP_KDF_derive(kdf.get(), out.data(), out.size(), params) == 1, "derive a key");
}

}  // namespace postrider::crypto
