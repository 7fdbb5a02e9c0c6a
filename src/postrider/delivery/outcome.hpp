// What came of one attempt, seen from the wire: closed, so that every place that decides has to name each
// case.
#pragma once

#include <chrono>
#include <optional>
#include <variant>

#include "postrider/base/time.hpp"
#include "postrider/http/net_error.hpp"

namespace postrider::http {
struct Exchange;
}

namespace postrider::delivery {

// The endpoint answered with a status line, whatever it says.
struct Answered {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after{};  // see http::parse_retry_after()
};

// No answer in time: name not found, connection or TLS failure, time-out, garbage.
struct Unreachable {
  http::NetError reason;
};

// The guard refused the destination; nothing was sent.
struct Blocked {};

// The attempt could not be made for a reason of this node (no descriptors left): it says nothing about the
// endpoint and uses up nothing.
struct NotAttempted {};

using Outcome = std::variant<Answered, Unreachable, Blocked, NotAttempted>;

// Nothing for an exchange that was canceled by this node: it has no result, and nothing is to be written
// down.
std::optional<Outcome> outcome_of(const http::Exchange& exchange, base::Timestamp now);

}  // namespace postrider::delivery
