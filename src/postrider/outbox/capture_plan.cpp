#include "postrider/outbox/capture_plan.hpp"

#include "postrider/outbox/capture.sql.hpp"
#include "postrider/outbox/damage.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::outbox {

namespace {

pg::Lsn lsn_of(std::string_view text) {
  const auto lsn = parse_lsn(text);
  if (!lsn) throw pg::Error(pg::Kind::other, "outbox_slot is damaged: it has a position that is not an LSN");
  return *lsn;
}

}  // namespace

CaptureView read_view(const pg::Rows& rows) {
  if (rows.empty()) throw missing_row("outbox_setting or outbox_slot");
  const auto row = sql::capture_view::Row::read(rows, 0);
  return {.is_wanted = row.mode == "cdc",
          .bytes_max = row.capture_bytes_max,
          .key = std::string(row.capture_key.view),
          .wal_level = std::string(row.wal_level),
          .slot_name = std::string(row.slot_name),
          .has_slot = row.has_slot,
          .is_slot_lost = row.is_slot_lost,
          .reader_pid = row.reader_pid,
          .retained_bytes = row.retained_bytes,
          .behind_bytes = row.behind_bytes,
          .was_slot_made = row.was_slot_made,
          .position = {lsn_of(row.commit_lsn), lsn_of(row.message_lsn)},
          .state = std::string(row.state)};
}

bool is_over_limit(const CaptureView& view) {
  return view.retained_bytes > view.bytes_max;
}

CaptureStep plan(const CaptureView& view, bool is_resting) {
  if (view.has_slot && view.is_slot_lost) return CaptureStep::mourn;
  if (!view.has_slot && view.was_slot_made) return CaptureStep::mourn;
  if (!view.is_wanted) return view.has_slot ? CaptureStep::drain : CaptureStep::rest;
  if (view.wal_level != "logical") return CaptureStep::reject;
  if (!view.has_slot) return is_resting ? CaptureStep::rest : CaptureStep::make_slot;
  // A drain is completed even if less is retained by now: a slot near its limit would go back and forth.
  if (is_over_limit(view) || view.state == "draining") return CaptureStep::drain;
  return CaptureStep::read;
}

}  // namespace postrider::outbox
