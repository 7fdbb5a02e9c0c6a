#include "postrider/http/server/request_id.hpp"

#include <algorithm>

#include "postrider/http/server/connection.hpp"

namespace postrider::http {

namespace {

constexpr size_t kRequestIdMax = 64;

}  // namespace

void ServerContext::make_request_id(std::string& id) {
  // splitmix64: one id per call, no two alike before 2^64 calls.
  uint64_t x = request_seed += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  x ^= x >> 31;
  id = "req_0000000000000000";
  for (size_t i = id.size(); x != 0; x >>= 4) id[--i] = "0123456789abcdef"[x & 15];
}

bool is_request_id(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kRequestIdMax && std::all_of(text.begin(), text.end(), is_allowed);
}

}  // namespace postrider::http
