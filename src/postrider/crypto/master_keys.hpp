// The keys that protect what leaves the process: AES-256-GCM, one current master key for writing, older ones
// for reading. The master key itself encrypts nothing: each purpose has a key of its own, derived from it.
//
// A sealed value is: format byte (1) | key id (8) | nonce (12) | ciphertext | tag (16). The context (for
// example "endpoint_secret/<endpoint>/<secret>") is authenticated but not stored, so a value copied to
// another row does not open there.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/crypto/digest.hpp"

namespace postrider::crypto {

using KeyId = Bytes<8>;  // derived from the key, so that it says nothing about it

// The purpose of a key. Random nonces limit how much one key may seal, and callers decide how many cursors
// there are: they must not use up the key of the secrets. A new use gets a purpose of its own.
enum class Purpose {
  stored_secret,  // secrets, custom headers and database URLs at rest
  cursor,         // of list calls
  check_value,    // see make_check_value()
};
constexpr size_t kPurposes = 3;

enum class OpenError {
  malformed,    // not something seal() wrote
  unknown_key,  // sealed with a key that is not configured
  tampered,     // right key, but the bytes or the context differ
};
std::string_view describe(OpenError error);

class MasterKeys {
 public:
  // Keys of 32 bytes in base64 or hex, separated by commas or white space; the first one is current, the
  // others are only accepted for reading. The error is a sentence that never repeats the text.
  static base::Result<MasterKeys, std::string> parse(std::string_view text);
  // 32 new random bytes in base64, as parse() reads them.
  static std::string generate();

  MasterKeys(const MasterKeys&) = default;
  MasterKeys(MasterKeys&&) = default;
  MasterKeys& operator=(const MasterKeys&) = default;
  MasterKeys& operator=(MasterKeys&&) = default;
  ~MasterKeys();  // wipes the keys

  std::string seal(Purpose purpose, std::string_view plaintext, std::string_view context) const;
  base::Result<std::string, OpenError> open(Purpose purpose, std::string_view sealed,
                                            std::string_view context) const;

  // Sealed with a key other than the current one: it should be sealed again. False for malformed values.
  bool is_outdated(std::string_view sealed) const;
  const KeyId& current_id() const { return keys_.front().id; }

  // A sealed constant in the database. It detects a start with the wrong key before that start does any
  // harm.
  std::string make_check_value() const;
  // True if one of the keys created this check value.
  bool accepts(std::string_view check_value) const;

 private:
  struct Key {
    KeyId id;
    std::array<Bytes<32>, kPurposes> derived;  // by purpose; the master key itself is not kept

    const Bytes<32>& of(Purpose purpose) const { return derived[static_cast<size_t>(purpose)]; }
  };
  static Key derive(std::string_view master_key);
  explicit MasterKeys(std::vector<Key> keys) : keys_(std::move(keys)) {}
  const Key* find(std::string_view id) const;

  std::vector<Key> keys_;  // never empty, but after a move
};

}  // namespace postrider::crypto
