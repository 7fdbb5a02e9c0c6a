#include "postrider/http/cors.hpp"

#include <algorithm>

namespace postrider::http {

namespace {

constexpr const char* kMethods = "GET, HEAD, POST, PUT, PATCH, DELETE";
constexpr const char* kRequestFields =
    "authorization, content-type, idempotency-key, if-match, if-none-match, traceparent, x-request-id";
constexpr const char* kResponseFields =
    "etag, location, ratelimit, ratelimit-policy, retry-after, x-request-id";
constexpr const char* kSeconds = "600";  // that a browser may remember it

}  // namespace

bool Cors::allows(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(),
                     [&](const std::string& each) { return each == "*" || each == origin; });
}

runtime::Task<Response> Cors::handle(Request& request) {
  const auto given = origins_.empty() ? std::nullopt : request.header("origin");
  const std::string origin(given.value_or(""));
  const bool is_allowed = given && allows(origin);
  const bool is_preflight = is_allowed && request.method == Method::options &&
                            request.header("access-control-request-method").has_value();
  auto handling = inner_.handle(request);
  Response response = co_await handling;
  if (origins_.empty()) co_return response;
  response.header("vary", "origin");  // also when it is refused: caches must not mix them up
  if (!is_allowed) co_return response;
  response.header("access-control-allow-origin", origin);
  if (is_preflight) {
    response.header("access-control-allow-methods", kMethods)
        .header("access-control-allow-headers", kRequestFields)
        .header("access-control-max-age", kSeconds);
  } else {
    response.header("access-control-expose-headers", kResponseFields);
  }
  co_return response;
}

}  // namespace postrider::http
