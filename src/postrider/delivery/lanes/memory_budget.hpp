// Limits the rows and body bytes that the lanes of a shard keep in memory. Rows that do not fit stay in the
// table and are fetched when there is room. Pure: no clock, no I/O.
#pragma once

#include "postrider/delivery/lanes/row_buffer.hpp"

namespace postrider::delivery {

struct MemoryLimits {
  size_t lane_rows_max = 500;        // first attempts of a lane, and again for its retries
  size_t lane_bytes_max = 4 << 20;   // of bodies, for each of the two
  size_t rows_max = 50'000;          // all lanes together
  size_t body_bytes_max = 64 << 20;  // all lanes together
};

class MemoryBudget {
 public:
  explicit MemoryBudget(MemoryLimits limits) : limits_(limits) {}

  BufferTotals& totals() { return totals_; }
  const BufferTotals& totals() const { return totals_; }

  // For one more row. Each buffer has its own limit: many retries that are due in hours must not keep new
  // events out. An empty buffer may always take one.
  bool has_room(const RowBuffer& buffer) const;
  bool has_room_for_bodies(const RowBuffer& buffer) const;
  size_t room_for_rows(const RowBuffer& buffer) const;

  // How many rows to fetch for the buffer. Rows in the table that may have to be sent sooner than those in
  // memory take their place; those are read again later.
  size_t make_room(RowBuffer& buffer) const;
  // Whether to fetch now. `is_resting`: the lane cannot send soon.
  bool needs_rows(const RowBuffer& buffer, bool is_resting) const;
  bool is_low(size_t rows) const { return rows <= limits_.lane_rows_max / kRefillPart; }

  // For a lane that cannot send soon: gives its bodies back, and most of its rows if rows are short.
  void rest(RowBuffer& buffer) const;
  bool is_short_of_rows() const { return totals_.rows > limits_.rows_max / 2; }
  static constexpr size_t kRowsResting = 2;

 private:
  static constexpr size_t kRefillPart = 4;  // a buffer is refilled below this part of its maximum

  MemoryLimits limits_;
  BufferTotals totals_;
};

}  // namespace postrider::delivery
