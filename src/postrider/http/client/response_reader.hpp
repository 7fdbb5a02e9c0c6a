// Parses the bytes of a connection as a response. No I/O: bytes are passed in as they arrive, in pieces of
// any size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/http/client/client.hpp"
#include "postrider/http/client/response_head.hpp"

namespace postrider::http {

// Enough for 64 KiB of data in chunks of a few bytes. A receiver that needs more gains nothing but a preview.
inline constexpr size_t kChunkFramingBytesMax = 64 * 1024;

// The chunked transfer coding, bare LF allowed.
class ChunkDecoder {
 public:
  enum class State : uint8_t { size, extension, data, data_end, trailer_start, trailer, done, failed };

  // `framing_bytes_max` bounds everything that is not data, over the whole response: chunk sizes, extensions,
  // line ends and trailers.
  explicit ChunkDecoder(size_t framing_bytes_max) : framing_bytes_left_(framing_bytes_max) {}

  // Takes bytes up to the next piece of data, which is returned (empty: nothing, or the end was reached).
  std::string_view next(std::string_view& input);
  State state() const { return state_; }

 private:
  void on_line_byte(char byte);

  State state_ = State::size;
  uint64_t left_ = 0;  // of the current chunk
  size_t framing_bytes_left_;
  bool has_digits_ = false;
};

class ResponseReader {
 public:
  struct Options {
    size_t body_bytes_max = 0;
    size_t framing_bytes_max = kChunkFramingBytesMax;
    bool responds_to_head = false;
    size_t kept_bytes_max = kResponsePreviewBytesMax;
    const std::function<void(std::string_view)>* on_body = nullptr;
  };
  explicit ResponseReader(Options options) : options_(options), chunks_(options.framing_bytes_max) {}

  void feed(std::string_view bytes);
  void feed_end();  // the peer closed

  bool has_bytes() const { return has_bytes_; }  // any byte has arrived
  bool has_head() const { return phase_ == Phase::body || phase_ == Phase::done; }
  bool is_done() const { return phase_ == Phase::done || phase_ == Phase::failed; }
  std::optional<NetError> error() const { return error_; }
  // The whole response was read, nothing is left over, and the peer keeps the connection open.
  bool can_reuse() const { return phase_ == Phase::done && is_reusable_; }
  ReceivedResponse& answer() { return response_; }  // when has_head()

 private:
  enum class Phase : uint8_t { head, body, done, failed };

  void feed_head(std::string_view bytes);
  bool take_head(std::string_view head);
  void feed_body(std::string_view bytes);
  void feed_chunks(std::string_view bytes);
  void keep(std::string_view data);
  void finish(bool is_complete);
  void fail(NetError error);

  Options options_;
  Phase phase_ = Phase::head;
  BodyKind body_ = BodyKind::until_end;
  bool is_reusable_ = false;
  bool has_bytes_ = false;
  uint8_t interim_responses_ = 0;
  uint64_t body_left_ = 0;
  size_t head_bytes_ = 0;  // of interim heads already taken
  size_t scanned_ = 0;     // of pending_
  std::string pending_;    // a head that has not arrived completely
  ChunkDecoder chunks_;
  std::optional<NetError> error_;
  ReceivedResponse response_;
};

}  // namespace postrider::http
