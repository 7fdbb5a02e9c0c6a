// The brakes of an incident: of the whole cluster, one row. Nodes hear of a change through the control log.
#pragma once

#include <optional>
#include <string>

#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/pause_span.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct BrakeSettings {
  bool is_paused = false;                       // nothing is sent
  std::optional<double> retry_rate_per_second;  // retries, over all nodes
  std::optional<double> drain_rate_per_second;  // everything, over all nodes

  bool operator==(const BrakeSettings&) const = default;
};

struct BrakeState {
  BrakeSettings settings;
  std::optional<std::string> reason, changed_by;
  std::optional<base::Timestamp> changed_at;
};

runtime::Task<BrakeState> load_brakes(pg::Link& link);

struct BrakeHistory {
  BrakeState state;
  PauseSpans pauses;  // of everything: in order, not overlapping
};
runtime::Task<BrakeHistory> load_brake_history(pg::Link& link);

struct BrakeChange {
  base::UniqueFunction<void(BrakeSettings&)> apply;  // to the current settings, with the row locked
  std::string reason;
  Caller caller;
};
// Audited, in the same transaction.
runtime::Task<BrakeState> change_brakes(pg::Link& link, BrakeChange change);

}  // namespace postrider::registry
