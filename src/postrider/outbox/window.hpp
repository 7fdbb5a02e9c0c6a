// Where the relay reads: everything that was not visible at the end of the window before, in order of
// (transaction, row), in chunks behind a position. A chunk starts where the last one ended and never at the
// head of the index, where a pinned horizon keeps dead rows. Pure.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "postrider/outbox/row.hpp"
#include "postrider/pg/snapshot_cursor.hpp"

namespace postrider::outbox {

struct Position {
  int64_t xid = 0;
  int64_t id = 0;
  auto operator<=>(const Position&) const = default;
};

class Window {
 public:
  // Behind the last one; or, full, over everything that is there.
  void begin(bool is_full);
  bool is_open() const { return is_open_; }

  // Transactions that were in progress when the last window began: their rows come first.
  const std::vector<std::string>& late() const { return late_; }
  const Position& position() const { return position_; }
  // Nothing that it will still read is before this.
  Position first_unread() const;

  // The rows of a chunk, and the snapshot taken before it was read: the next window begins with the one that
  // was taken before the first chunk. A chunk without rows is the last.
  void read(std::string_view snapshot, const std::vector<OutboxRow>& late,
            const std::vector<OutboxRow>& fresh);
  // Transactions that were in progress when the last window began.
  bool is_anything_in_progress() const { return !cursor_.in_progress.empty(); }

 private:
  pg::SnapshotCursor cursor_;
  std::optional<pg::SnapshotCursor> next_;
  std::vector<std::string> late_;
  Position position_;
  bool is_open_ = false;
};

}  // namespace postrider::outbox
