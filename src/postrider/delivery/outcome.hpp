// What came of one attempt, seen from the wire: closed, so that every place that decides has to name each
// case.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <variant>

namespace postrider::delivery {

// The endpoint answered with a status line, whatever it says. Statuses outside 200 to 599 are no answer at
// all and are treated as such.
struct Answered {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after;  // see parse_retry_after()
};

// No answer in time: name not found, connection or TLS failure, time-out, garbage. The reason is for people
// (attempt row, log line); it decides nothing.
struct Unreachable {
  std::string_view reason;  // of static lifetime
};

// The guard refused the destination; nothing was sent.
struct Blocked {};

using Outcome = std::variant<Answered, Unreachable, Blocked>;

}  // namespace postrider::delivery
