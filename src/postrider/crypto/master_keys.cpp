#include "postrider/crypto/master_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/hkdf.hpp"
#include "postrider/crypto/openssl_error.hpp"
#include "postrider/crypto/random.hpp"

namespace postrider::crypto {
namespace {

constexpr char kFormatVersion = 1;
constexpr size_t kKeyBytes = 32;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
constexpr size_t kHeaderBytes = 1 + sizeof(KeyId) + kNonceBytes;
constexpr size_t kOverheadBytes = kHeaderBytes + kTagBytes;
constexpr size_t kKeysMax = 16;
constexpr size_t kPlaintextBytesMax = 1 << 20;
constexpr std::string_view kCheckPlaintext = "postrider master key";
constexpr std::string_view kCheckContext = "master_key_check";
// In the order of Purpose. These are part of the stored values: a changed text gives another key.
constexpr std::array<std::string_view, kPurposes> kPurposeInfo = {
    "postrider/1/stored_secret", "postrider/1/cursor", "postrider/1/check_value"};

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

const EVP_CIPHER* aes_256_gcm() {
  static EVP_CIPHER* const algorithm = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  require(algorithm != nullptr, "fetch AES-256-GCM");
  return algorithm;
}

unsigned char* data_of(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// The parts of a sealed value.
struct Sealed {
  std::string_view key_id;
  std::string_view nonce;
  std::string_view ciphertext;
  std::string_view tag;
};

std::optional<Sealed> split(std::string_view sealed) {
  if (sealed.size() < kOverheadBytes || sealed[0] != kFormatVersion) return std::nullopt;
  if (sealed.size() > kOverheadBytes + kPlaintextBytesMax) return std::nullopt;
  return Sealed{
      .key_id = sealed.substr(1, sizeof(KeyId)),
      .nonce = sealed.substr(1 + sizeof(KeyId), kNonceBytes),
      .ciphertext = sealed.substr(kHeaderBytes, sealed.size() - kOverheadBytes),
      .tag = sealed.substr(sealed.size() - kTagBytes),
  };
}

// 64 hex digits are also 48 bytes of base64, so the two forms cannot be confused.
std::optional<std::string> decode_key(std::string_view text) {
  std::optional<std::string> bytes =
      text.size() == 2 * kKeyBytes ? base::hex_decode(text) : base::base64_decode(text);
  if (bytes && bytes->size() != kKeyBytes) bytes.reset();
  return bytes;
}

}  // namespace

std::string_view describe(OpenError error) {
  switch (error) {
    case OpenError::malformed:
      return "not a sealed value";
    case OpenError::unknown_key:
      return "sealed with a master key that is not configured";
    case OpenError::tampered:
      return "changed since it was sealed, or moved from another place";
  }
  return "";
}

base::Result<MasterKeys, std::string> MasterKeys::parse(std::string_view text) {
  constexpr std::string_view separators = ", \t\r\n";
  std::vector<Key> keys;
  while (true) {
    const size_t start = text.find_first_not_of(separators);
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find_first_of(separators));
    text.remove_prefix(word.size());

    std::optional<std::string> bytes = decode_key(word);
    if (!bytes) return base::Failure{std::string("a master key must be 32 bytes in base64 or in hex")};
    if (keys.size() == kKeysMax) return base::Failure{std::string("there are more than 16 master keys")};
    keys.push_back(derive(*bytes));
    OPENSSL_cleanse(bytes->data(), bytes->size());
  }
  if (keys.empty()) return base::Failure{std::string("the master key is empty")};
  return MasterKeys(std::move(keys));
}

std::string MasterKeys::generate() {
  return base::base64_encode(random_bytes(kKeyBytes));
}

MasterKeys::Key MasterKeys::derive(std::string_view master_key) {
  Key key;
  hkdf_sha256({.key = master_key, .salt = "", .info = "postrider/1/key_id"}, key.id);
  for (size_t i = 0; i < kPurposes; ++i)
    hkdf_sha256({.key = master_key, .salt = "", .info = kPurposeInfo[i]}, key.derived[i]);
  return key;
}

MasterKeys::~MasterKeys() {
  for (Key& key : keys_)
    for (Bytes<32>& derived : key.derived) OPENSSL_cleanse(derived.data(), derived.size());
}

const MasterKeys::Key* MasterKeys::find(std::string_view id) const {
  const auto found = std::ranges::find_if(keys_, [&](const Key& key) { return key.id.view() == id; });
  return found == keys_.end() ? nullptr : &*found;
}

std::string MasterKeys::seal(Purpose purpose, std::string_view plaintext, std::string_view context) const {
  CHECK(plaintext.size() <= kPlaintextBytesMax);
  const Key& key = keys_.front();
  std::string out;
  out.reserve(plaintext.size() + kOverheadBytes);
  out += kFormatVersion;
  out += key.id.view();
  out += random_bytes(kNonceBytes);
  out.resize(plaintext.size() + kOverheadBytes);

  const Cipher cipher(EVP_CIPHER_CTX_new());
  unsigned char* const nonce = data_of(out) + kHeaderBytes - kNonceBytes;
  unsigned char* const body = data_of(out) + kHeaderBytes;
  int length = 0;
  const bool done =
      cipher != nullptr &&
      EVP_EncryptInit_ex2(cipher.get(), aes_256_gcm(), key.of(purpose).data(), nonce, nullptr) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &length, data_of(context), static_cast<int>(context.size())) ==
          1 &&
      EVP_EncryptUpdate(cipher.get(), body, &length, data_of(plaintext),
                        static_cast<int>(plaintext.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), body + plaintext.size(), &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, body + plaintext.size()) == 1;
  require(done, "encrypt with AES-256-GCM");
  return out;
}

base::Result<std::string, OpenError> MasterKeys::open(Purpose purpose, std::string_view sealed,
                                                      std::string_view context) const {
  const std::optional<Sealed> parts = split(sealed);
  if (!parts) return base::Failure{OpenError::malformed};
  const Key* const key = find(parts->key_id);
  if (key == nullptr) return base::Failure{OpenError::unknown_key};

  const Cipher cipher(EVP_CIPHER_CTX_new());
  std::string plaintext(parts->ciphertext.size(), '\0');
  std::string tag(parts->tag);
  int length = 0;
  const bool is_set_up =
      cipher != nullptr &&
      EVP_DecryptInit_ex2(cipher.get(), aes_256_gcm(), key->of(purpose).data(), data_of(parts->nonce),
                          nullptr) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &length, data_of(context), static_cast<int>(context.size())) ==
          1 &&
      EVP_DecryptUpdate(cipher.get(), data_of(plaintext), &length, data_of(parts->ciphertext),
                        static_cast<int>(parts->ciphertext.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1;
  require(is_set_up, "decrypt with AES-256-GCM");
  if (EVP_DecryptFinal_ex(cipher.get(), data_of(plaintext) + plaintext.size(), &length) != 1) {
    ERR_clear_error();
    OPENSSL_cleanse(plaintext.data(), plaintext.size());
    return base::Failure{OpenError::tampered};
  }
  return plaintext;
}

bool MasterKeys::is_outdated(std::string_view sealed) const {
  const std::optional<Sealed> parts = split(sealed);
  return parts && parts->key_id != current_id().view();
}

std::string MasterKeys::make_check_value() const {
  return seal(Purpose::check_value, kCheckPlaintext, kCheckContext);
}

bool MasterKeys::accepts(std::string_view check_value) const {
  const auto opened = open(Purpose::check_value, check_value, kCheckContext);
  return opened.ok() && *opened == kCheckPlaintext;
}

}  // namespace postrider::crypto
