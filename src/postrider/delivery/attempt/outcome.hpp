// The result of one exchange. Closed, so that every place that decides has to name each case.
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

// The endpoint sent a response, with any status.
struct Responded {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after{};  // see http::parse_retry_after()
};

// No response in time: name not found, connection or TLS failure, timeout, not HTTP.
struct Unreachable {
  http::NetError reason;
};

// The guard does not allow the destination; nothing was sent.
struct Blocked {};

// The attempt could not be made for a reason of this node (no descriptors left): it shows nothing about the
// endpoint and uses up no attempt.
struct NotAttempted {};

using Outcome = std::variant<Responded, Unreachable, Blocked, NotAttempted>;

// Nothing for an exchange that was canceled by this node: it has no result, and nothing is to be written
// down.
std::optional<Outcome> outcome_of(const http::Exchange& exchange, base::Timestamp now);

}  // namespace postrider::delivery
