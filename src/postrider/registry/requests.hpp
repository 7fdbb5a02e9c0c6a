// Requests from functions in SQL, such as pause_endpoint() and replay_delivery(). Their callers decide
// when they commit and must hold none of postrider's locks until then, so they only write down what is
// wanted.
#pragma once

#include "postrider/pg/link.hpp"

namespace postrider::registry {

inline constexpr int requested_replays_max = 100;  // at a time

// Serves committed requests. For every node, often: each request is served once. Throws
// pg::Error.
runtime::Task<void> serve_requests(pg::Link& link);

}  // namespace postrider::registry
