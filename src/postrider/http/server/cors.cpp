#include "postrider/http/server/cors.hpp"

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

runtime::Task<Admission> Cors::admit(Request& head) {
  auto asking = inner_.admit(head);
  Admission admission = co_await asking;
  if (admission.rejection) add_fields(*admission.rejection, head);
  co_return admission;
}

runtime::Task<Response> Cors::handle(Request& request) {
  auto handling = inner_.handle(request);
  Response response = co_await handling;
  add_fields(response, request);
  co_return response;
}

void Cors::add_fields(Response& response, const Request& request) const {
  if (origins_.empty()) return;
  response.header("vary", "origin");  // also when it is rejected, so that caches keep them apart
  const auto given = request.header("origin");
  if (!given || !allows(*given)) return;
  response.header("access-control-allow-origin", std::string(*given));
  const bool is_preflight =
      request.method == Method::options && request.header("access-control-request-method").has_value();
  if (is_preflight) {
    response.header("access-control-allow-methods", kMethods)
        .header("access-control-allow-headers", kRequestFields)
        .header("access-control-max-age", kSeconds);
  } else {
    response.header("access-control-expose-headers", kResponseFields);
  }
}

}  // namespace postrider::http
