// The wording of delivery's log lines and the labels of its metrics, in one place.
#pragma once

#include "postrider/delivery/settle.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

struct AttemptLine {
  const Lane& lane;
  const Row& row;
  const Verdict& verdict;
  const AttemptFacts& facts;
  bool is_probe;
};
void log_attempt(const AttemptLine& line);

void count_attempt(const telemetry::Metrics& metrics, const Settlement& settlement);

}  // namespace postrider::delivery
