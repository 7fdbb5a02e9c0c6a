#pragma once

#include <string_view>

namespace postrider::http {

// What callers may send as X-Request-Id. It is copied to logs, headers and documents unchanged.
bool is_request_id(std::string_view text);

}  // namespace postrider::http
