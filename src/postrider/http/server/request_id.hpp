#pragma once

#include <string_view>

namespace postrider::http {

// Validates the X-Request-Id of callers. It is copied to logs, headers and documents unchanged.
bool is_request_id(std::string_view text);

}  // namespace postrider::http
