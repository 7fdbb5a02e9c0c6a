// SHA-256 and keyed digests, on OpenSSL 3. All functions are safe from any thread: algorithms are fetched
// once per process and every thread keeps one context of its own.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace postrider::crypto {

template <size_t N>
struct Bytes : std::array<uint8_t, N> {
  std::string_view view() const { return {reinterpret_cast<const char*>(this->data()), N}; }
};

using Digest256 = Bytes<32>;
using Digest160 = Bytes<20>;
using Digest512 = Bytes<64>;

Digest256 sha256(std::string_view bytes);
Digest256 sha256(std::initializer_list<std::string_view> parts);  // one after the other

// The digest of the concatenated parts, so that a body can be signed without copying it.
Digest256 hmac_sha256(std::string_view key, std::initializer_list<std::string_view> parts);
// For senders that choose it.
Digest512 hmac_sha512(std::string_view key, std::initializer_list<std::string_view> parts);
// Only for senders who know nothing better (Twilio).
Digest160 hmac_sha1(std::string_view key, std::initializer_list<std::string_view> parts);

// Time depends on the lengths only.
bool constant_time_equal(std::string_view a, std::string_view b);

}  // namespace postrider::crypto
