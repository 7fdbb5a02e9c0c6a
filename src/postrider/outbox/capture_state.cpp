#include "postrider/outbox/capture_state.hpp"

#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/damage.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::outbox {

pg::Batch capture_state_batch(const CaptureChange& change) {
  pg::Batch batch;
  if (change.mode) batch.with(sql::set_mode, *change.mode);
  if (change.bytes_max) batch.with(sql::set_capture_bytes_max, *change.bytes_max);
  batch.add(sql::capture_state);
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
  CaptureState state;
  state.mode = last.get<std::string>(0, 0);
  state.state = last.get<std::string>(0, 1);
  state.reason = last.get<std::optional<std::string>>(0, 2);
  state.since = last.get<base::Timestamp>(0, 3);
  state.lost_at = last.get<std::optional<base::Timestamp>>(0, 4);
  state.bytes_max = last.get<int64_t>(0, 5);
  state.behind_bytes = last.get<int64_t>(0, 6);
  state.retained_bytes = last.get<int64_t>(0, 7);
  state.slot = last.get<std::optional<std::string>>(0, 8);
  return state;
}

}  // namespace postrider::outbox
