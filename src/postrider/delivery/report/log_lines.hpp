// The wording of delivery's log lines and the labels of its metrics, in one place.
#pragma once

#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/settle/settle.hpp"

namespace postrider::delivery {

struct AttemptLine {
  const Lane& lane;
  const QueueRow& row;
  const Verdict& verdict;
  const AttemptFacts& facts;
  bool is_probe;
};
void log_attempt(const AttemptLine& line);
void log_expired(const Lane& lane, const QueueRow& row);

// A settlement that is durable.
void count_settlement(const Metrics& metrics, const Settlement& settlement, base::Timestamp now);
void count_attempt(const Metrics& metrics, const Settlement& settlement);

}  // namespace postrider::delivery
