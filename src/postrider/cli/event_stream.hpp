// Follows /v1/stream: reads server-sent events, reconnects after an interruption, continues after the last
// event, and reports the state of the connection.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

struct StreamMessage {
  std::string kind = "message", id, data;
};

// Puts messages together from what arrives.
class MessageReader {
 public:
  void feed(std::string_view data, const std::function<void(const StreamMessage&)>& take);
  void reset() { buffer_.clear(); }

 private:
  std::string buffer_;
};

// The keys of the newest messages that were handled.
class Seen {
 public:
  bool add(const std::string& key);  // false: it was there already

 private:
  std::unordered_set<std::string> keys_;
  std::deque<std::string> order_;
};

struct StreamOptions {
  Target target;                     // without `after`
  std::optional<std::string> after;  // where to start; none: now
  std::optional<std::chrono::steady_clock::time_point> until;
};

// Follows until `until`, or until an error that reconnecting cannot fix. `take` gets every message but
// ready and gap and returns whether it was new; repeats are counted and reported.
class EventStream {
 public:
  EventStream(Invocation& in, StreamOptions options) : in_(in), options_(std::move(options)) {}
  void follow(const std::function<bool(const StreamMessage&)>& take);

 private:
  void connect(const std::function<bool(const StreamMessage&)>& take);
  void handle(const StreamMessage& message, const std::function<bool(const StreamMessage&)>& take);
  void ready();
  void lost(const std::string& why);
  bool is_over() const { return options_.until && std::chrono::steady_clock::now() >= *options_.until; }

  Invocation& in_;
  StreamOptions options_;
  MessageReader reader_;
  bool is_connected_ = false, was_connected_ = false, has_said_lost_ = false;
  int64_t fresh_ = 0, repeats_ = 0;  // since the connection was made
};

}  // namespace postrider::cli
