// ETag, If-Match and If-None-Match.
//
// A tag is "r<revision>-<hash of the body>". If-Match compares only the revision, so that counters and health
// in a document, which change by themselves, do not reject a change; If-None-Match compares the whole tag.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"
#include "postrider/registry/caller.hpp"

namespace postrider::api {

void add_etag(http::Response& response, int64_t revision);

// A list of tags, or *. Tags that are not ours match nothing.
registry::Precondition read_if_match(const http::Request& request);

// Turns a successful GET whose tag the caller already has into a 304.
void drop_body_if_known(http::Response& response, const http::Request& request);

}  // namespace postrider::api
