// Shows an endpoint, and a test request to it, to people.
#pragma once

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

void print_endpoint(Invocation& in, const json::value& endpoint);
// The secret and little else.
void print_created_endpoint(Invocation& in, const json::value& endpoint);
void print_endpoint_status(Invocation& in, const json::value& endpoint);
// Request, response and timings, as `curl -v` prints them.
void print_exchange(Invocation& in, const json::value& exchange);
// A secret that was created or rotated, and that it is shown only once.
void print_new_secret(Invocation& in, const json::value& response);

// "HTTP 404 Not Found"
std::string http_status_text(const json::value& status_code);

}  // namespace postrider::cli
