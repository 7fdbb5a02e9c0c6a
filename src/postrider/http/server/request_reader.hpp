// Bytes to a Request: the head, then the body as the head frames it. Pure: no sockets, no clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/http/request.hpp"
#include "postrider/http/server/request_chunks.hpp"
#include "postrider/http/server/request_head.hpp"

namespace postrider::http {

class RequestReader {
 public:
  // `decide` is reached with the head read and the body untouched: the owner reads request() and calls
  // accept_body().
  enum class Stage { head, decide, body, complete, rejected };

  explicit RequestReader(RequestHead::Limits limits) : limits_(limits), head_(limits) {}

  // Returns the number of bytes used; the others belong to the next request (or, after `decide`, to the
  // body). A body that comes in one piece is not copied: the bytes must stay where they are until reset().
  size_t feed(std::string_view bytes);
  void accept_body(size_t bytes_max);
  void reject(RequestError rejection);
  void reset();

  Stage stage() const { return stage_; }
  bool has_started() const { return head_.has_started(); }
  const RequestError& rejection() const { return *rejection_; }

  // From `decide` on.
  Request& request() { return request_; }
  bool keeps_alive() const { return head_.keeps_alive(); }
  bool expects_continue() const { return head_.expects_continue(); }
  bool is_http_1_0() const { return head_.is_http_1_0(); }
  size_t body_bytes() const { return body_.size(); }  // copied so far
  bool may_have_body_over(size_t bytes) const {
    return head_.is_chunked() || head_.content_length().value_or(0) > bytes;
  }

 private:
  void take_head();
  size_t take_body(std::string_view bytes);
  void complete_with(std::string_view body);

  RequestHead::Limits limits_;
  RequestHead head_;
  std::optional<RequestChunks> chunks_;
  uint64_t body_bytes_left_ = 0;  // of a body with a length
  std::string body_;
  Request request_;
  Stage stage_ = Stage::head;
  std::optional<RequestError> rejection_;
};

}  // namespace postrider::http
