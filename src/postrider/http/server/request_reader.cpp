#include "postrider/http/server/request_reader.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"
#include "postrider/base/number_text.hpp"

namespace postrider::http {

namespace {

constexpr size_t kBodyBytesKept = 64 << 10;  // a larger buffer is not kept for the next request

}  // namespace

void RequestReader::reject(RequestError rejection) {
  rejection_ = rejection;
  stage_ = Stage::rejected;
}

size_t RequestReader::feed(std::string_view bytes) {
  if (stage_ == Stage::body) return take_body(bytes);
  if (stage_ != Stage::head) return 0;
  const size_t taken = head_.feed(bytes);
  if (head_.rejection())
    reject(*head_.rejection());
  else if (head_.is_done())
    take_head();
  return taken;
}

void RequestReader::take_head() {
  const std::string_view target = head_.target();
  const size_t path_end = std::min(target.find('?'), target.size());
  request_.method = parse_method(head_.method());
  request_.target = target;
  request_.path = target.substr(0, path_end);
  const bool has_escapes = request_.path.find('%') != std::string_view::npos;
  if (has_escapes && !percent_decode(request_.path))
    return reject({400, "The path is not valid UTF-8 after percent-decoding, or contains an encoded NUL."});
  if (path_end < target.size()) {
    auto query = parse_query(target.substr(path_end + 1));
    if (!query)
      return reject(
          {400, "The query is not valid UTF-8 after percent-decoding, or contains an encoded NUL."});
    request_.query = std::move(*query);
  }
  head_.fields(request_.fields);
  stage_ = Stage::decide;
}

void RequestReader::accept_body(size_t bytes_max) {
  CHECK(stage_ == Stage::decide);
  const uint64_t length = head_.content_length().value_or(0);
  if (length > bytes_max)
    return reject({413, "The request body is " + base::grouped(length) + " bytes; the limit is " +
                            base::grouped(bytes_max) + "."});
  if (head_.is_chunked()) {
    chunks_.emplace(bytes_max, limits_.bytes_max);
    stage_ = Stage::body;
  } else if (length > 0) {
    body_bytes_left_ = length;
    stage_ = Stage::body;
  } else {
    complete_with({});
  }
}

size_t RequestReader::take_body(std::string_view bytes) {
  if (chunks_) {
    const size_t taken = chunks_->feed(bytes, body_);
    if (chunks_->rejection())
      reject(*chunks_->rejection());
    else if (chunks_->is_done())
      complete_with(body_);
    return taken;
  }
  const size_t taken = static_cast<size_t>(std::min<uint64_t>(body_bytes_left_, bytes.size()));
  const std::string_view piece = bytes.substr(0, taken);
  body_bytes_left_ -= taken;
  if (body_bytes_left_ == 0 && body_.empty()) {
    complete_with(piece);
  } else {
    body_.append(piece);
    if (body_bytes_left_ == 0) complete_with(body_);
  }
  return taken;
}

void RequestReader::complete_with(std::string_view body) {
  request_.body = body;
  stage_ = Stage::complete;
}

void RequestReader::reset() {
  head_.reset();
  chunks_.reset();
  body_bytes_left_ = 0;
  if (body_.capacity() > kBodyBytesKept) body_ = std::string();
  body_.clear();
  request_.method = Method::other;
  request_.target = {};
  request_.path = {};
  request_.query.clear();
  request_.path_parameters.clear();
  request_.fields.clear();
  request_.body = {};
  request_.is_authenticated = false;
  stage_ = Stage::head;
  rejection_.reset();
}

}  // namespace postrider::http
