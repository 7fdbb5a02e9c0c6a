// Decides the next step for an outbox's replication slot. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postrider/outbox/captured.hpp"
#include "postrider/pg/rows.hpp"

namespace postrider::outbox {

// The state of the outbox's database in one check.
struct CaptureView {
  bool is_wanted = false;  // the outbox's mode is cdc
  int64_t bytes_max = 0;   // of log that the slot may keep the server from removing
  std::string key;         // see read_message()
  std::string wal_level;
  std::string slot_name;
  bool has_slot = false;
  bool is_slot_lost = false;  // the server has removed data that it had not sent
  std::optional<int32_t> reader_pid;
  int64_t retained_bytes = 0;  // of log that the server keeps for the slot
  int64_t behind_bytes = 0;    // of log that is not confirmed
  bool was_slot_made = false;  // by us, and not dropped by us
  LogPosition position;
  std::string state;
};
CaptureView read_view(const pg::Rows& rows);

enum class CaptureStep {
  rest,       // there is no slot and none is wanted
  reject,     // wanted, but the server is not set up for it
  make_slot,  // wanted, and there is none
  mourn,      // a slot is gone or invalid that we had: messages may be lost
  read,       // read it, and let emit() write messages
  drain,      // let emit() write rows, read the rest, drop the slot
};
// `is_resting`: it fell back a short while ago.
CaptureStep plan(const CaptureView& view, bool is_resting);
bool is_over_limit(const CaptureView& view);

}  // namespace postrider::outbox
