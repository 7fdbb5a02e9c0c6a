#include "postrider/http/server/request_chunks.hpp"

#include <algorithm>

#include "postrider/base/number_text.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

using grammar::is;

namespace {

constexpr int kSizeDigitsMax = 16;  // leading zeros included

}  // namespace

size_t RequestChunks::feed(std::string_view bytes, std::string& body) {
  size_t at = 0;
  while (at < bytes.size() && state_ != State::done && !rejection_) {
    if (state_ == State::data) {
      const size_t length = static_cast<size_t>(std::min<uint64_t>(chunk_bytes_left_, bytes.size() - at));
      body.append(bytes.substr(at, length));
      at += length;
      chunk_bytes_left_ -= length;
      if (chunk_bytes_left_ == 0) state_ = State::data_cr;
    } else if (spend_framing() && step(bytes[at])) {
      ++at;
    }
  }
  return at;
}

bool RequestChunks::reject(int status, std::string_view detail) {
  rejection_ = RequestError{status, std::string(detail)};
  return false;
}

bool RequestChunks::expect(char c, char wanted, State next) {
  if (c != wanted) return reject(400, "A chunk does not end in CR LF.");
  state_ = next;
  return true;
}

bool RequestChunks::spend_extra() {
  if (extra_bytes_left_ == 0) return reject(431, "Chunk extensions and trailer fields are too large.");
  --extra_bytes_left_;
  return true;
}

bool RequestChunks::spend_framing() {
  if (framing_bytes_left_ == 0)
    return reject(
        413, "The chunks of the request body are too small: their framing is larger than the body limit.");
  --framing_bytes_left_;
  return true;
}

bool RequestChunks::step(char c) {
  switch (state_) {
    case State::size_start:
    case State::size:
      return size_byte(c);
    case State::extension_start:
    case State::extension_name:
    case State::extension_value_start:
    case State::extension_value:
    case State::extension_quoted:
    case State::extension_escaped:
    case State::extension_end:
      return spend_extra() && extension_byte(c);
    case State::size_lf:
      return expect(c, '\n', chunk_bytes_left_ == 0 ? State::trailer_start : State::data);
    case State::data_cr:
      return expect(c, '\r', State::data_lf);
    case State::data_lf:
      return expect(c, '\n', State::size_start);
    case State::trailer_start:
    case State::trailer_name:
    case State::trailer_value:
      return trailer_byte(c);
    case State::trailer_lf:
      return expect(c, '\n', State::trailer_start);
    case State::end_lf:
      return expect(c, '\n', State::done);
    case State::data:
    case State::done:
      break;
  }
  return false;
}

bool RequestChunks::size_byte(char c) {
  if (is(c, grammar::hex_digit)) {
    const int value = is(c, grammar::digit) ? c - '0' : lower(c) - 'a' + 10;
    chunk_bytes_left_ = chunk_bytes_left_ * 16 + static_cast<uint64_t>(value);
    // Rejected at the digit that makes it too large, so the number cannot overflow.
    if (chunk_bytes_left_ > body_bytes_left_)
      return reject(
          413, "The request body is larger than the limit of " + base::grouped(body_bytes_max_) + " bytes.");
    size_digits_ = state_ == State::size_start ? 1 : size_digits_ + 1;
    state_ = State::size;
    return size_digits_ <= kSizeDigitsMax || reject(400, "A chunk size has too many digits.");
  }
  if (state_ == State::size_start || (c != '\r' && c != ';'))
    return reject(400, "A chunk size is not a number.");
  body_bytes_left_ -= chunk_bytes_left_;
  state_ = c == ';' ? State::extension_start : State::size_lf;
  return true;
}

// ;name, ;name=token or ;name="quoted", read only to find its end.
bool RequestChunks::extension_byte(char c) {
  const bool is_token = is(c, grammar::token);
  switch (state_) {
    case State::extension_quoted:
      if (c == '"')
        state_ = State::extension_end;
      else if (c == '\\')
        state_ = State::extension_escaped;
      if (is(c, grammar::value)) return true;
      break;
    case State::extension_escaped:
      state_ = State::extension_quoted;
      if (is(c, grammar::value)) return true;
      break;
    case State::extension_start:
    case State::extension_value_start:
      if (is_token) {
        state_ = state_ == State::extension_start ? State::extension_name : State::extension_value;
        return true;
      }
      if (c == '"' && state_ == State::extension_value_start) {
        state_ = State::extension_quoted;
        return true;
      }
      break;
    default:  // a name, a value or a closing quote was just read
      if (is_token && state_ != State::extension_end) return true;
      if (c == '=' && state_ == State::extension_name) {
        state_ = State::extension_value_start;
        return true;
      }
      if (c == ';' || c == '\r') {
        state_ = c == ';' ? State::extension_start : State::size_lf;
        return true;
      }
  }
  return reject(400, "A chunk extension is malformed.");
}

bool RequestChunks::trailer_byte(char c) {
  if (state_ == State::trailer_start && c == '\r') return expect(c, '\r', State::end_lf);
  if (state_ == State::trailer_value) {
    if (c == '\r') return expect(c, '\r', State::trailer_lf);
    if (!is(c, grammar::value))
      return reject(400, "A trailer value contains a control character or a bare line feed.");
    return spend_extra();
  }
  if (state_ == State::trailer_name && c == ':') {
    state_ = State::trailer_value;
    return true;
  }
  if (!is(c, grammar::token))
    return reject(400, "A trailer name must be a token, directly followed by a colon.");
  state_ = State::trailer_name;
  return spend_extra();
}

}  // namespace postrider::http
