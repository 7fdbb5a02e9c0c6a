// A queue row as the statements of fetch.sql return it.
#pragma once

#include <algorithm>

#include "postrider/delivery/attempt/row.hpp"

namespace postrider::delivery {

template <class Found>
QueueRow read_row(const Found& found) {
  QueueRow row;
  row.key = {found.position, found.due_at, {found.id}};
  row.event_id = {found.event_id};
  row.attempts = std::max(0, found.attempts);
  row.probes = std::max(0, found.probes);
  row.created_at = found.created_at;
  row.replay_id = found.replay_id;
  return row;
}

}  // namespace postrider::delivery
