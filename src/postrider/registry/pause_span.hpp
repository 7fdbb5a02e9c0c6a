// Times that do not count against the deadline of a delivery. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "postrider/base/time.hpp"

namespace postrider::registry {

// Time during which nothing was sent, [since, until). An open span is still going on.
struct PauseSpan {
  base::Timestamp since;
  std::optional<base::Timestamp> until;

  bool operator==(const PauseSpan&) const = default;
};
using PauseSpans = std::vector<PauseSpan>;

// In order; overlapping and touching spans become one, so that no second is counted twice.
PauseSpans merged(PauseSpans spans);

// The part of [from, to) that lies in the spans, which are in order and do not overlap.
std::chrono::microseconds paused_between(std::span<const PauseSpan> spans, base::Timestamp from,
                                         base::Timestamp to);

// The latest time from which `running` has passed until `now`, not counting the spans, which are in order and
// do not overlap. It never moves back as time passes.
base::Timestamp running_since(std::span<const PauseSpan> spans, std::chrono::microseconds running,
                              base::Timestamp now);

}  // namespace postrider::registry
