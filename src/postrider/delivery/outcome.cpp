#include "postrider/delivery/outcome.hpp"

#include "postrider/http/client/client.hpp"
#include "postrider/http/retry_after.hpp"

namespace postrider::delivery {

std::optional<Outcome> outcome_of(const http::Exchange& exchange, base::Timestamp now) {
  if (const http::Answer* answer = exchange.answer())
    return Answered{.status = answer->status,
                    .retry_after = http::parse_retry_after(answer->retry_after, now)};
  switch (const http::NetError error = exchange.failure()->error) {
    case http::NetError::blocked:
      return Blocked{};
    case http::NetError::local_failure:
      return NotAttempted{};
    case http::NetError::canceled:
      return std::nullopt;
    default:
      return Unreachable{error};
  }
}

}  // namespace postrider::delivery
