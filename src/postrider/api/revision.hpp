// ETag and If-Match: a change of something that somebody else changed meanwhile is refused with 412.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postrider/http/request.hpp"

namespace postrider::api {

std::string etag(int32_t revision);

// The revision that If-Match names. Nothing without the header, or with `*`: whatever is there. A tag that is
// none of ours is one that no revision has.
std::optional<int32_t> if_match(const http::Request& request);

}  // namespace postrider::api
