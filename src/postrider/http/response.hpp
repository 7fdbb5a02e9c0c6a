#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::http {

// Where a streaming response (server-sent events, long downloads) writes its pieces.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Sends a piece. False when the client is gone or the server drains: the producer returns then. The bytes
  // must live until the task ends.
  virtual runtime::Task<bool> write(std::string_view piece) = 0;
  // True from the moment the client is gone or the server drains; a producer that waits for a long time must
  // check it now and then.
  virtual bool is_closing() const = 0;
  // Closes the connection at once; data that was not sent yet is dropped. Not from within write().
  virtual void cut() = 0;
};

// A response. The server adds content-length, connection, date-independent framing and x-request-id; bodies
// of 1 KiB and more are compressed when the client accepts it and the handler did not set content-encoding
// itself.
struct Response {
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>>
      headers;  // names in lower case; values must not contain CR or LF
  // If set, it writes the body, chunked. It runs after the head was sent and owns its captures.
  base::UniqueFunction<runtime::Task<void>(BodyStream&)> stream;
  bool close = false;  // close the connection after this response

  static Response json(int status, std::string body);
  static Response text(int status, std::string body);
  static Response empty(int status);

  Response& header(std::string name, std::string value);
};

std::string_view reason_phrase(int status);

}  // namespace postrider::http
