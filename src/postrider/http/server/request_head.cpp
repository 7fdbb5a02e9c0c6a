#include "postrider/http/server/request_head.hpp"

#include <algorithm>
#include <charconv>

#include "postrider/base/number_text.hpp"
#include "postrider/http/request_grammar.hpp"

namespace postrider::http {

using grammar::is;

namespace {

constexpr size_t kMethodBytesMax = 32;
constexpr size_t kSliceBytes = 1024;  // how far the copy of the head may run ahead of the reading

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Calls take(element) for each element of a comma-separated list, until one is rejected.
template <class Take>
bool each_element(std::string_view list, Take take) {
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view element = list.substr(0, comma);
    while (!element.empty() && is_blank(element.front())) element.remove_prefix(1);
    while (!element.empty() && is_blank(element.back())) element.remove_suffix(1);
    if (!take(element)) return false;
    if (comma == list.size()) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

void RequestHead::reset() {
  std::string text = std::move(text_);
  std::vector<FieldSpan> fields = std::move(fields_);
  *this = RequestHead(limits_);
  text.clear();
  fields.clear();
  text_ = std::move(text);
  fields_ = std::move(fields);
}

bool RequestHead::reject(int status, std::string_view detail) {
  rejection_ = RequestError{status, std::string(detail)};
  return false;
}

size_t RequestHead::feed(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ != State::done && !rejection_) {
    const std::string_view slice = bytes.substr(taken, kSliceBytes);
    const size_t before = text_.size();
    text_.append(slice);
    while (at_ < text_.size() && state_ != State::done) {
      if (at_ >= limits_.bytes_max) {
        reject(431, "The request head is too large (limit: " + base::grouped(limits_.bytes_max) + " bytes).");
        break;
      }
      if (!step(text_[at_])) break;
      ++at_;
      skip_plain();
    }
    text_.resize(at_);
    taken += at_ - before;
  }
  return taken;
}

// Most of a head is runs of characters that do not change the state. Skipping them here instead of in step()
// halves the time.
void RequestHead::skip_plain() {
  size_t end = std::min(text_.size(), limits_.bytes_max);
  grammar::Class plain = grammar::token;
  if (state_ == State::value) {
    plain = grammar::value;
  } else if (state_ == State::target && at_ > target_.begin && escape_digits_left_ == 0) {
    plain = grammar::plain_target;
    end = std::min(end, target_.begin + limits_.target_bytes_max);
  } else if (state_ != State::field_name) {
    return;
  }
  const char* text = text_.data();
  uint32_t at = at_;
  while (at < end && is(text[at], plain)) ++at;
  at_ = at;
}

bool RequestHead::step(char c) {
  switch (state_) {
    case State::start:
    case State::method:
      return start_byte(c);
    case State::start_lf:
      state_ = State::method;
      method_.begin = at_ + 1;
      return c == '\n' || reject(400, "A line must end in CR LF.");
    case State::target:
      return target_byte(c);
    case State::version:
      return version_byte(c);
    case State::line_lf:
    case State::value_lf:
      if (c != '\n') return reject(400, "A line must end in CR LF.");
      if (state_ == State::value_lf && !end_of_field()) return false;
      state_ = State::field_start;
      return true;
    case State::field_start:
    case State::field_name:
      return name_byte(c);
    case State::before_value:
    case State::value:
      return value_byte(c);
    case State::end_lf:
      if (c != '\n') return reject(400, "A line must end in CR LF.");
      if (!end_of_head()) return false;
      state_ = State::done;
      return true;
    case State::done:
      break;
  }
  return false;
}

bool RequestHead::start_byte(char c) {
  if (is(c, grammar::token)) {
    state_ = State::method;
    if (at_ - method_.begin >= kMethodBytesMax) return reject(400, "The method is too long.");
    return true;
  }
  // One empty line before a request is allowed (RFC 9112 §2.2).
  if (state_ == State::start && c == '\r') {
    state_ = State::start_lf;
    return true;
  }
  if (c != ' ' || at_ == method_.begin) return reject(400, "This is not an HTTP/1.1 request.");
  method_.end = at_;
  target_.begin = at_ + 1;
  state_ = State::target;
  return true;
}

bool RequestHead::target_byte(char c) {
  if (c == ' ' && at_ > target_.begin && escape_digits_left_ == 0) {
    target_.end = at_;
    state_ = State::version;
    return true;
  }
  if (!is(c, grammar::target))
    return reject(400, "The request target contains a character that must be percent-encoded.");
  if (at_ == target_.begin && c != '/' && c != '*' && lower(c) != 'h')
    return reject(400, "The request target must be a path or an http URL.");
  if (escape_digits_left_ > 0) {
    if (!is(c, grammar::hex_digit))
      return reject(400, "The request target contains an invalid percent-encoding.");
    --escape_digits_left_;
  } else if (c == '%') {
    escape_digits_left_ = 2;
  }
  if (at_ - target_.begin >= limits_.target_bytes_max)
    return reject(414,
                  "The request target is longer than " + base::grouped(limits_.target_bytes_max) + " bytes.");
  return true;
}

bool RequestHead::version_byte(char c) {
  constexpr std::string_view kVersion = "HTTP/1.";
  if (version_bytes_ < kVersion.size()) {
    if (c != kVersion[version_bytes_]) return reject(400, "The HTTP version must be 1.1 or 1.0.");
  } else if (version_bytes_ == kVersion.size()) {
    if (c != '0' && c != '1') return reject(400, "The HTTP version must be 1.1 or 1.0.");
    minor_version_ = c - '0';
  } else {
    if (c != '\r') return reject(400, "The request line must end in CR LF.");
    state_ = State::line_lf;
  }
  ++version_bytes_;
  return true;
}

bool RequestHead::name_byte(char c) {
  if (state_ == State::field_start) {
    if (c == '\r') {
      state_ = State::end_lf;
      return true;
    }
    if (!is(c, grammar::token))
      return reject(400, "A header line must begin with a name and must not be folded.");
    if (fields_.size() >= limits_.fields_max)
      return reject(431,
                    "The request has more than " + base::grouped(limits_.fields_max) + " header fields.");
    field_.name.begin = at_;
    state_ = State::field_name;
    return true;
  }
  if (is(c, grammar::token)) return true;
  if (c != ':') return reject(400, "A header name must be a token, directly followed by a colon.");
  field_.name.end = at_;
  state_ = State::before_value;
  return true;
}

bool RequestHead::value_byte(char c) {
  if (c == '\r') {
    Span& value = field_.value;
    value.end = at_;
    if (state_ == State::before_value) value.begin = at_;
    while (value.end > value.begin && is_blank(text_[value.end - 1])) --value.end;
    state_ = State::value_lf;
    return true;
  }
  if (!is(c, grammar::value))
    return reject(400, "A header value contains a control character or a bare line feed.");
  if (state_ == State::value || is_blank(c)) return true;
  field_.value.begin = at_;
  state_ = State::value;
  return true;
}

bool RequestHead::end_of_field() {
  fields_.push_back(field_);
  const std::string_view name = view(field_.name), value = view(field_.value);
  if (equals_ignoring_case(name, "host")) {
    if (host_) return reject(400, "The request has two Host headers.");
    if (value.empty() || !grammar::all(value, grammar::host))
      return reject(400, "The Host header is invalid.");
    host_ = field_.value;
  } else if (equals_ignoring_case(name, "content-length")) {
    return take_content_length(value);
  } else if (equals_ignoring_case(name, "transfer-encoding")) {
    if (is_chunked_) return reject(400, "The request has two Transfer-Encoding headers.");
    if (content_length_) return reject(400, "The request has both Content-Length and Transfer-Encoding.");
    if (minor_version_ == 0) return reject(400, "HTTP/1.0 does not support Transfer-Encoding.");
    if (!equals_ignoring_case(value, "chunked"))
      return reject(400, "The only supported transfer coding is chunked.");
    is_chunked_ = true;
  } else if (equals_ignoring_case(name, "content-type")) {
    // With two fields, the code that reads the body could use another type than the code that accepted the
    // request.
    if (has_content_type_) return reject(400, "The request has two Content-Type headers.");
    has_content_type_ = true;
  } else if (equals_ignoring_case(name, "connection")) {
    return take_connection(value);
  } else if (equals_ignoring_case(name, "expect")) {
    if (!equals_ignoring_case(value, "100-continue"))
      return reject(417, "The only supported expectation is 100-continue.");
    expects_continue_ = minor_version_ == 1;
  }
  return true;
}

bool RequestHead::take_content_length(std::string_view value) {
  if (content_length_) return reject(400, "The request has two Content-Length headers.");
  if (is_chunked_) return reject(400, "The request has both Content-Length and Transfer-Encoding.");
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (value.empty() || error != std::errc() || end != value.data() + value.size())
    return reject(400, "The Content-Length is not a number.");
  content_length_ = length;
  return true;
}

bool RequestHead::take_connection(std::string_view value) {
  const bool good = each_element(value, [&](std::string_view option) {
    if (equals_ignoring_case(option, "close")) says_close_ = true;
    if (equals_ignoring_case(option, "keep-alive")) says_keep_alive_ = true;
    return grammar::all(option, grammar::token);
  });
  return good || reject(400, "The Connection header is not a list of tokens.");
}

bool RequestHead::end_of_head() {
  if (!host_ && minor_version_ == 1) return reject(400, "The Host header is missing.");
  return check_authority();
}

// An absolute target (as sent to proxies) is read as its path, if its authority is the Host.
bool RequestHead::check_authority() {
  const std::string_view target = view(target_);
  if (target.front() == '/') return true;
  if (target.front() == '*') {
    if (target.size() == 1 && method() == "OPTIONS") return true;
    return reject(400, "The request target must be a path or an http URL.");
  }
  const size_t scheme = target.find("://");
  if (scheme == std::string_view::npos || (!equals_ignoring_case(target.substr(0, scheme), "http") &&
                                           !equals_ignoring_case(target.substr(0, scheme), "https")))
    return reject(400, "The request target must be a path or an http URL.");
  const size_t path = std::min(target.find('/', scheme + 3), target.size());
  if (!host_ || !equals_ignoring_case(target.substr(scheme + 3, path - scheme - 3), view(*host_)))
    return reject(400, "The request target and the Host header name different hosts.");
  if (path == target.size()) return reject(400, "The request target has no path.");
  target_.begin += static_cast<uint32_t>(path);
  return true;
}

void RequestHead::fields(std::vector<Field>& out) const {
  out.clear();
  for (const FieldSpan& field : fields_) out.push_back({view(field.name), view(field.value)});
}

}  // namespace postrider::http
