// Unpredictable bytes, from the operating system through OpenSSL.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace postrider::crypto {

void fill_random(std::span<unsigned char> out);
std::string random_bytes(size_t count);

}  // namespace postrider::crypto
