#include "postrider/http/client/response_reader.hpp"

#include <algorithm>

namespace postrider::http {

namespace {

constexpr uint8_t kInterimResponsesMax = 16;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view ChunkDecoder::next(std::string_view& input) {
  while (!input.empty() && state_ != State::done && state_ != State::failed) {
    if (state_ == State::data) {
      const std::string_view piece = input.substr(0, std::min<uint64_t>(left_, input.size()));
      input.remove_prefix(piece.size());
      left_ -= piece.size();
      if (left_ == 0) state_ = State::data_end;
      return piece;
    }
    const char byte = input.front();
    input.remove_prefix(1);
    if (framing_bytes_left_ == 0) {
      state_ = State::failed;
    } else {
      --framing_bytes_left_;
      on_line_byte(byte);
    }
  }
  return {};
}

void ChunkDecoder::on_line_byte(char byte) {
  switch (state_) {
    case State::size:
      if (const int digit = hex_value(byte); digit >= 0) {
        if (left_ >> 56 != 0) state_ = State::failed;
        left_ = left_ << 4 | static_cast<uint64_t>(digit);
        has_digits_ = true;
        return;
      }
      if (!has_digits_) {
        state_ = State::failed;
        return;
      }
      if (byte != '\n') {
        const bool may_follow = byte == '\r' || byte == ';' || byte == ' ' || byte == '\t';
        state_ = may_follow ? State::extension : State::failed;
        return;
      }
      [[fallthrough]];
    case State::extension:
      if (byte != '\n') return;
      state_ = left_ > 0 ? State::data : State::trailer_start;
      has_digits_ = false;
      return;
    case State::data_end:
      if (byte == '\n')
        state_ = State::size;
      else if (byte != '\r')
        state_ = State::failed;
      return;
    case State::trailer_start:
      if (byte == '\n')
        state_ = State::done;
      else if (byte != '\r')
        state_ = State::trailer;
      return;
    case State::trailer:
      if (byte == '\n') state_ = State::trailer_start;
      return;
    case State::data:
    case State::done:
    case State::failed:
      return;
  }
}

void ResponseReader::feed(std::string_view bytes) {
  if (bytes.empty()) return;
  has_bytes_ = true;
  if (phase_ == Phase::head) {
    feed_head(bytes);
  } else if (phase_ == Phase::body) {
    feed_body(bytes);
  } else {
    is_reusable_ = false;  // more than the response
  }
}

void ResponseReader::feed_end() {
  if (phase_ == Phase::head)
    fail(NetError::connection_closed);
  else if (phase_ == Phase::body)
    finish(body_ == BodyKind::until_end);
  is_reusable_ = false;
}

void ResponseReader::feed_head(std::string_view bytes) {
  if (!pending_.empty()) bytes = pending_.append(bytes);
  size_t taken = 0;
  while (phase_ == Phase::head) {
    const std::string_view rest = bytes.substr(taken);
    if (!may_be_http(rest)) return fail(NetError::not_http);
    const auto end = find_head_end(rest, taken == 0 ? scanned_ : 0);
    if (head_bytes_ + end.value_or(rest.size()) > kResponseHeadBytesMax)
      return fail(NetError::head_too_large);
    if (!end) {
      scanned_ = rest.size() < 2 ? 0 : rest.size() - 2;
      if (taken > 0 || pending_.empty()) pending_ = std::string(rest);  // else it holds exactly this already
      return;
    }
    if (!take_head(rest.substr(0, *end))) return fail(NetError::not_http);
    taken += *end;
    head_bytes_ += *end;
  }
  if (phase_ != Phase::failed) feed_body(bytes.substr(taken));
  pending_ = std::string();
}

bool ResponseReader::take_head(std::string_view text) {
  const auto head = parse_response_head(text, options_.responds_to_head);
  if (!head) return false;
  if (head->status < 200 && head->status != 101) return ++interim_responses_ <= kInterimResponsesMax;
  response_.status = head->status;
  response_.retry_after = head->retry_after;
  response_.content_type = head->content_type;
  if (head->status < 200 || head->status > 299) response_.head = text;
  body_ = head->body;
  body_left_ = head->body_bytes;
  is_reusable_ = head->is_reusable && head->status != 101;
  phase_ = Phase::body;
  return true;
}

void ResponseReader::feed_body(std::string_view bytes) {
  switch (body_) {
    case BodyKind::none:
      finish(true);
      break;
    case BodyKind::length: {
      const std::string_view data = bytes.substr(0, std::min<uint64_t>(body_left_, bytes.size()));
      bytes.remove_prefix(data.size());
      // If the body will not be read to its end, the preview is enough.
      const bool is_too_long = response_.body_bytes + body_left_ > options_.body_bytes_max;
      body_left_ -= data.size();
      keep(data);
      if (body_left_ == 0)
        finish(!is_too_long);
      else if (is_too_long && response_.body_start.size() >= options_.kept_bytes_max)
        finish(false);
      break;
    }
    case BodyKind::chunked:
      return feed_chunks(bytes);
    case BodyKind::until_end:
      keep(bytes);
      return;
  }
  if (phase_ == Phase::done && !bytes.empty()) is_reusable_ = false;
}

void ResponseReader::feed_chunks(std::string_view bytes) {
  while (phase_ == Phase::body && !bytes.empty()) {
    keep(chunks_.next(bytes));
    if (chunks_.state() == ChunkDecoder::State::failed)
      finish(false);
    else if (chunks_.state() == ChunkDecoder::State::done)
      finish(true);
  }
  if (!bytes.empty()) is_reusable_ = false;
}

void ResponseReader::keep(std::string_view data) {
  if (phase_ != Phase::body) return;
  response_.body_bytes += data.size();
  const bool is_success = response_.status < 300;  // an error's body is not the data that was asked for
  if (options_.on_body && is_success && !data.empty()) (*options_.on_body)(data);
  const size_t room = options_.kept_bytes_max - response_.body_start.size();
  response_.body_start.append(data.substr(0, room));
  if (body_ != BodyKind::length && response_.body_bytes > options_.body_bytes_max) finish(false);
}

void ResponseReader::finish(bool is_complete) {
  if (phase_ != Phase::body) return;
  phase_ = Phase::done;
  response_.is_complete = is_complete;
  if (!is_complete) is_reusable_ = false;
}

void ResponseReader::fail(NetError error) {
  phase_ = Phase::failed;
  error_ = error;
  is_reusable_ = false;
}

}  // namespace postrider::http
