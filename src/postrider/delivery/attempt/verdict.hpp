// Step "verdict": what an outcome means for the delivery and for its endpoint. Pure: clock and jitter are
// arguments.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/delivery/attempt/outcome.hpp"
#include "postrider/delivery/attempt/retry_schedule.hpp"
#include "postrider/model/endpoint_enums.hpp"

namespace postrider::delivery {

enum class Cause { rejected, gone, exhausted, expired, blocked, endpoint_disabled };
std::string_view label(Cause cause);

// The treatment of 3xx, and of 4xx that are not known to be temporary.
using model::OnRejected;

struct RetryPolicy {
  int max_attempts = 8;
  std::chrono::seconds give_up{259'200};
  OnRejected on_rejected = OnRejected::dead_letter;
  RetrySchedule schedule;
};

inline constexpr int rejections_to_pause = 10;
inline constexpr double retry_jitter_max = 0.2;  // share of the scheduled delay

// The circumstances of an attempt that the verdict depends on.
struct AttemptContext {
  int number = 1;  // of this attempt, from 1
  base::Timestamp created_at{};
  std::chrono::microseconds paused_for{0};  // time since creation during which its clock stood still
  base::Timestamp now{};
  double jitter = 0;        // in [0, 1)
  int rejected_in_row = 0;  // rejections by this endpoint in a row, before this one
  bool is_probe = false;    // sent while the breaker was open
};

struct Verdict {
  enum class Kind { delivered, retrying, dead_letter };
  enum class Endpoint { unchanged, disable, pause };
  // What the outcome shows about the endpoint: failed is transient and counts for the breaker, rejected
  // counts for OnRejected::pause, neutral (blocked, not attempted) shows nothing.
  enum class Signal { succeeded, failed, rejected, neutral };

  Kind kind = Kind::delivered;
  Signal signal = Signal::succeeded;
  Cause cause = Cause::rejected;  // when kind is dead_letter
  base::Timestamp retry_at{};     // when kind is retry; never later than the delivery's deadline
  // False for a failed probe that leaves its delivery waiting, and for what was not attempted: the count
  // stays.
  bool raises_attempts = true;
  Endpoint endpoint = Endpoint::unchanged;               // what else happens to the endpoint
  std::optional<base::Timestamp> hold_endpoint_until{};  // 429 and 503 with Retry-After
};

// With OnRejected::pause a rejection never uses up max_attempts: deliveries are kept until the endpoint is
// resumed.
Verdict decide(const Outcome& outcome, const AttemptContext& attempt, const RetryPolicy& policy);

// When a delivery that was attempted expires unless it was delivered; see Expiry for the others. A delivery
// whose retry would be later is due at its deadline, and then expires instead of being sent.
struct Age {
  base::Timestamp created_at{};
  std::chrono::microseconds paused_for{0};
};
base::Timestamp deadline(const Age& age, const RetryPolicy& policy);
bool is_expired(const Age& age, const RetryPolicy& policy, base::Timestamp now);

}  // namespace postrider::delivery
