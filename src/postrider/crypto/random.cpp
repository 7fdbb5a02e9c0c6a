#include "postrider/crypto/random.hpp"

#include <openssl/rand.h>

#include "postrider/base/check.hpp"
#include "postrider/crypto/openssl_error.hpp"

namespace postrider::crypto {

void fill_random(std::span<unsigned char> out) {
  CHECK(out.size() <= 1'000'000);
  require(RAND_bytes(out.data(), static_cast<int>(out.size())) == 1, "make random bytes");
}

std::string random_bytes(size_t count) {
  std::string out(count, '\0');
  fill_random({reinterpret_cast<unsigned char*>(out.data()), out.size()});
  return out;
}

}  // namespace postrider::crypto
