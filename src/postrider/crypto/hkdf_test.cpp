#include "postrider/crypto/hkdf.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "postrider/base/encoding.hpp"

namespace postrider::crypto {
namespace {

std::string bytes(int from, int to) {
  std::string text;
  for (int value = from; value <= to; ++value) text += static_cast<char>(value);
  return text;
}

std::string derive(const HkdfInput& input, size_t length) {
  std::vector<uint8_t> out(length);
  hkdf_sha256(input, out);
  return base::hex_encode({reinterpret_cast<const char*>(out.data()), out.size()});
}

// RFC 5869, appendix A.
TEST(Hkdf, GivesTheKeysOfTheRfc) {
  const std::string key(22, '\x0b');
  const std::string salt = bytes(0x00, 0x0c);
  const std::string info = bytes(0xf0, 0xf9);
  EXPECT_EQ(derive({.key = key, .salt = salt, .info = info}, 42),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  const std::string long_key = bytes(0x00, 0x4f), long_salt = bytes(0x60, 0xaf),
                    long_info = bytes(0xb0, 0xff);
  EXPECT_EQ(
      derive({.key = long_key, .salt = long_salt, .info = long_info}, 82),
      "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da327"
      "5600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(derive({.key = key, .salt = "", .info = ""}, 42),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

}  // namespace
}  // namespace postrider::crypto
