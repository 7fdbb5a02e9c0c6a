// A Response to bytes.
#pragma once

#include <string>
#include <string_view>

#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::http {

struct ResponseFraming {
  std::string_view request_id;
  std::string_view date;     // RFC 9110 date, kept by the server
  bool is_head = false;      // the head only, as if for GET
  bool is_http_1_0 = false;  // no chunked coding: a stream ends with the connection
  bool close = false;
};

// Appends head and body; of a streaming response only the head.
void append_response(std::string& out, const Response& response, const ResponseFraming& framing);
void append_chunk(std::string& out, std::string_view piece);

// Compresses the body when the client accepts gzip and it is worth it.
runtime::Task<void> compress_if_accepted(Response& response, const Request& request, runtime::Loop& loop);

std::string http_date(int64_t unix_seconds);

}  // namespace postrider::http
