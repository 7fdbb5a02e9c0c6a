#include "postrider/delivery/attempt/expiry.hpp"

#include <algorithm>

namespace postrider::delivery {

Expiry::Expiry(const ExpiryClock& clock, base::Timestamp now)
    : cutoff_(registry::running_since(clock.pauses, clock.give_up, now)) {
  for (const registry::PauseSpan& span : clock.unserved) {
    const base::Timestamp until = span.until.value_or(now);
    if (until <= cutoff_) continue;
    owed_.push_back({registry::running_since(clock.pauses, clock.give_up, span.since),
                     registry::running_since(clock.pauses, clock.give_up, until)});
  }
}

bool Expiry::is_expired(base::Timestamp created_at) const {
  if (created_at > cutoff_) return false;
  return std::ranges::none_of(
      owed_, [created_at](const Owed& owed) { return owed.after < created_at && created_at <= owed.up_to; });
}

}  // namespace postrider::delivery
