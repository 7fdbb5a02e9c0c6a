#pragma once

#include <string_view>

namespace postrider::http {

// What callers may send as X-Request-Id: it goes into logs, headers and documents as it is.
bool is_request_id(std::string_view text);

}  // namespace postrider::http
