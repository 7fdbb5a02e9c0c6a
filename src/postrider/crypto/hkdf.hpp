// HKDF-SHA256 (RFC 5869): independent keys from one master key.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace postrider::crypto {

struct HkdfInput {
  std::string_view key;
  std::string_view salt;
  std::string_view info;  // what the derived key is for
};

// Fills `out`, at most 8,160 bytes. Different `info` gives keys that say nothing about each other.
void hkdf_sha256(const HkdfInput& input, std::span<uint8_t> out);

}  // namespace postrider::crypto
