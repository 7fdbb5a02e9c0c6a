#include "postrider/api/wire/rate_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace postrider::api {

void add_rate_fields(http::Response& response, std::string_view policy,
                     const base::RateLimiter::Allowance& allowance) {
  // The quota must be an integer: less than one per second is one per a longer window.
  const double rate = allowance.rate_per_second;
  const auto quota = static_cast<int64_t>(std::max(1.0, std::floor(rate)));
  const auto window = static_cast<int64_t>(rate >= 1 ? 1 : std::ceil(1 / rate));
  response.header("ratelimit-policy", fmt::format("\"{}\";q={};w={}", policy, quota, window));
  response.header("ratelimit", fmt::format("\"{}\";r={};t={}", policy, allowance.remaining,
                                           allowance.remaining > 0 ? window : allowance.next_after.count()));
  if (response.status != 429) return;
  std::erase_if(response.headers, [](const auto& header) { return header.first == "retry-after"; });
  response.header("retry-after", std::to_string(allowance.next_after.count()));
}

}  // namespace postrider::api
