// Private to crypto/: a call of OpenSSL that cannot fail on valid input did.
#pragma once

#include <openssl/err.h>

#include <stdexcept>
#include <string>

namespace postrider::crypto {

// Out of memory, or an OpenSSL without the algorithm (such as a FIPS provider): no work can continue.
inline void require(bool done, const char* what) {
  if (done) return;
  char text[256] = "no error queued";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof text);
  throw std::runtime_error(std::string("OpenSSL could not ") + what + ": " + text);
}

}  // namespace postrider::crypto
