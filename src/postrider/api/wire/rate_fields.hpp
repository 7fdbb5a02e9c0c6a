// RateLimit and RateLimit-Policy, as in draft-ietf-httpapi-ratelimit-headers.
#pragma once

#include <string_view>

#include "postrider/base/rate_limiter.hpp"
#include "postrider/http/response.hpp"

namespace postrider::api {

// `policy` names the limit, for example "publish". On a 429 also Retry-After.
void add_rate_fields(http::Response& response, std::string_view policy,
                     const base::RateLimiter::Allowance& allowance);

}  // namespace postrider::api
