#include "postrider/outbox/capture_plan.hpp"

#include "postrider/outbox/damage.hpp"
#include "postrider/pg/error.hpp"

namespace postrider::outbox {

namespace {

pg::Lsn lsn_of(const pg::Rows& rows, size_t column) {
  const auto lsn = parse_lsn(rows.get<std::string_view>(0, column));
  if (!lsn) throw pg::Error(pg::Kind::other, "outbox_slot is damaged: it has a position that is not an LSN");
  return *lsn;
}

}  // namespace

CaptureView read_view(const pg::Rows& rows) {
  if (rows.empty()) throw missing_row("outbox_setting or outbox_slot");
  CaptureView view;
  view.is_wanted = rows.get<std::string_view>(0, 0) == "cdc";
  view.bytes_max = rows.get<int64_t>(0, 1);
  view.key = rows.get<pg::Bytes>(0, 2).view;
  view.wal_level = rows.get<std::string>(0, 3);
  view.slot_name = rows.get<std::string>(0, 4);
  view.has_slot = rows.get<bool>(0, 5);
  view.is_slot_lost = rows.get<bool>(0, 6);
  view.reader_pid = rows.get<std::optional<int32_t>>(0, 7);
  view.retained_bytes = rows.get<int64_t>(0, 8);
  view.behind_bytes = rows.get<int64_t>(0, 9);
  view.was_slot_made = rows.get<bool>(0, 10);
  view.position = {lsn_of(rows, 11), lsn_of(rows, 12)};
  view.state = rows.get<std::string>(0, 13);
  return view;
}

bool is_over_limit(const CaptureView& view) {
  return view.retained_bytes > view.bytes_max;
}

CaptureStep plan(const CaptureView& view, bool is_resting) {
  if (view.has_slot && view.is_slot_lost) return CaptureStep::mourn;
  if (!view.has_slot && view.was_slot_made) return CaptureStep::mourn;
  if (!view.is_wanted) return view.has_slot ? CaptureStep::drain : CaptureStep::rest;
  if (view.wal_level != "logical") return CaptureStep::refuse;
  if (!view.has_slot) return is_resting ? CaptureStep::rest : CaptureStep::make_slot;
  // What was begun is ended, although there may be less by now: a slot near its limit would go back and
  // forth.
  if (is_over_limit(view) || view.state == "draining") return CaptureStep::drain;
  return CaptureStep::read;
}

}  // namespace postrider::outbox
