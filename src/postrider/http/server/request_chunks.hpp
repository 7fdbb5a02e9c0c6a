// Decodes a chunked request body byte by byte, as strictly as the head is parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/http/server/request_head.hpp"

namespace postrider::http {

class RequestChunks {
 public:
  // `extra_bytes_max` bounds chunk extensions and trailer fields together; both are read and ignored. All
  // framing, chunk sizes and line ends included, may take that and as much again as the body may.
  RequestChunks(size_t body_bytes_max, size_t extra_bytes_max)
      : body_bytes_max_(body_bytes_max),
        body_bytes_left_(body_bytes_max),
        extra_bytes_left_(extra_bytes_max),
        framing_bytes_left_(uint64_t{body_bytes_max} + extra_bytes_max) {}

  // Appends decoded data to `body`; returns how many bytes it consumed.
  size_t feed(std::string_view bytes, std::string& body);
  bool is_done() const { return state_ == State::done; }
  const std::optional<RequestError>& rejection() const { return rejection_; }

 private:
  enum class State : uint8_t {
    size_start,
    size,
    extension_start,  // after a ';'
    extension_name,
    extension_value_start,  // after a '='
    extension_value,
    extension_quoted,
    extension_escaped,
    extension_end,  // after a closing quote
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_lf,
    end_lf,
    done
  };
  bool step(char c);  // false: invalid
  bool size_byte(char c);
  bool extension_byte(char c);
  bool trailer_byte(char c);
  bool expect(char c, char wanted, State next);
  bool spend_extra();
  bool spend_framing();
  bool reject(int status, std::string_view detail);

  uint64_t body_bytes_max_;
  State state_ = State::size_start;
  int size_digits_ = 0;
  uint64_t chunk_bytes_left_ = 0;
  uint64_t body_bytes_left_;
  uint64_t extra_bytes_left_;
  uint64_t framing_bytes_left_;
  std::optional<RequestError> rejection_;
};

}  // namespace postrider::http
