// Reads a request head byte by byte and rejects it at the first byte after which no valid request can follow.
//
// Beast's parser validates only at the end of the head, accepts two Hosts, none, or an unknown transfer
// coding, and unfolds folded fields. A filter in front of it would need this whole grammar, so this is the
// parser, and the tests compare it with Beast's (docs/decisions/request-parser.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/http/request.hpp"

namespace postrider::http {

struct RequestError {
  int status;
  std::string detail;  // a sentence for the client
};

class RequestHead {
 public:
  struct Limits {
    size_t bytes_max;
    size_t fields_max;
    size_t target_bytes_max;
  };
  explicit RequestHead(Limits limits) : limits_(limits) {}

  // Consumes bytes up to the end of the head, a rejection or the end of `bytes`; returns how many it
  // consumed.
  size_t feed(std::string_view bytes);
  void reset();

  bool has_started() const { return !text_.empty(); }
  bool is_done() const { return state_ == State::done; }
  const std::optional<RequestError>& rejection() const { return rejection_; }

  // Once it is done. Views live until reset().
  std::string_view method() const { return view(method_); }
  std::string_view target() const { return view(target_); }
  bool is_http_1_0() const { return minor_version_ == 0; }
  void fields(std::vector<Field>& out) const;
  std::optional<uint64_t> content_length() const { return content_length_; }
  bool is_chunked() const { return is_chunked_; }
  bool keeps_alive() const { return minor_version_ == 1 ? !says_close_ : says_keep_alive_ && !says_close_; }
  bool expects_continue() const { return expects_continue_; }

 private:
  enum class State : uint8_t {
    start,
    start_lf,
    method,
    target,
    version,
    line_lf,
    field_start,
    field_name,
    before_value,
    value,
    value_lf,
    end_lf,
    done
  };
  struct Span {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  struct FieldSpan {
    Span name;
    Span value;
  };

  std::string_view view(Span span) const {
    return std::string_view(text_).substr(span.begin, span.end - span.begin);
  }
  bool reject(int status, std::string_view detail);
  void skip_plain();
  bool step(char c);  // false: invalid
  bool start_byte(char c);
  bool target_byte(char c);
  bool version_byte(char c);
  bool name_byte(char c);
  bool value_byte(char c);
  bool end_of_field();
  bool end_of_head();
  bool check_authority();
  bool take_content_length(std::string_view value);
  bool take_connection(std::string_view value);

  Limits limits_;
  State state_ = State::start;
  std::string text_;  // the head so far
  uint32_t at_ = 0;   // the current byte, in text_
  Span method_, target_;
  std::vector<FieldSpan> fields_;
  FieldSpan field_;
  std::optional<Span> host_;
  std::optional<uint64_t> content_length_;
  uint8_t version_bytes_ = 0;
  uint8_t escape_digits_left_ = 0;  // hex digits still missing after a '%' in the target
  int minor_version_ = 1;
  bool is_chunked_ = false, says_close_ = false, says_keep_alive_ = false, expects_continue_ = false;
  bool has_content_type_ = false;
  std::optional<RequestError> rejection_;
};

}  // namespace postrider::http
