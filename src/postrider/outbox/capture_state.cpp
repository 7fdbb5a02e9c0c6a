#include "postrider/outbox/capture_state.hpp"

#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/damage.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::outbox {

pg::Batch capture_state_batch(const CaptureChange& change) {
  pg::Batch batch;
  if (change.mode) batch.add(sql::set_mode{.mode = *change.mode});
  if (change.bytes_max) batch.add(sql::set_capture_bytes_max{.bytes = *change.bytes_max});
  batch.add(sql::capture_state{});
  return batch;
}

pg::Batch capture_note(const registry::Caller& caller, const std::string& outbox,
                       const CaptureChange& change) {
  registry::Snapshot after;
  if (change.mode) after.add("mode", *change.mode);
  if (change.bytes_max) after.add("bytes_max", *change.bytes_max);
  pg::Batch batch;
  registry::add_audit(batch, caller,
                      {.action = "outbox.capture", .object = outbox, .after = std::move(after)});
  return batch;
}

CaptureState read_capture_state(const pg::Rows& last) {
  if (last.empty()) throw missing_row("outbox_setting or outbox_slot");
  const auto row = sql::capture_state::Row::read(last, 0);
  CaptureState state;
  state.mode = row.mode;
  state.state = row.state;
  if (row.reason) state.reason = *row.reason;
  state.since = row.state_since;
  state.lost_at = row.lost_at;
  state.bytes_max = row.capture_bytes_max;
  state.behind_bytes = row.behind_bytes;
  state.retained_bytes = row.retained_bytes;
  if (row.slot_name) state.slot = *row.slot_name;
  return state;
}

}  // namespace postrider::outbox
