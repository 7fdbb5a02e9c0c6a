// The part of a lane's rows that is in memory, in sending order, and information about the others in the
// table.
//
// Two facts make it safe. If `may_have_more` is false, everything the lane has in the table is in memory, so
// a newly committed row may be added without a fetch. If it is true, the rows in memory come before the
// cursor and all others after it: a new row that belongs before the cursor is taken, and any other is found
// by the next fetch, which starts at the cursor (so it never reads the dead rows before it). The cursor moves
// back when rows before it are announced that are not in memory; until they are read, they may be due sooner
// than those in memory.
#pragma once

#include <boost/container/devector.hpp>
#include <optional>
#include <vector>

#include "postrider/base/unique_function.hpp"
#include "postrider/delivery/attempt/row.hpp"

namespace postrider::delivery {

// The total of all buffers of a shard.
struct BufferTotals {
  size_t rows = 0;
  size_t body_bytes = 0;
};

class RowBuffer {
 public:
  // Not std::deque, which takes 600 bytes even when it is empty: there may be 100,000 lanes with two buffers
  // each.
  using Rows = boost::container::devector<QueueRow>;

  enum class Order { by_due, strict };
  explicit RowBuffer(BufferTotals& totals, Order order = Order::by_due) : totals_(totals), order_(order) {}
  ~RowBuffer() { clear(); }
  RowBuffer(const RowBuffer&) = delete;
  RowBuffer& operator=(const RowBuffer&) = delete;

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  bool may_have_more() const { return may_have_more_; }
  bool is_fetching() const { return is_fetching_; }
  const QueueRow* front() const { return rows_.empty() ? nullptr : &rows_.front(); }
  size_t body_bytes() const { return body_bytes_; }
  const Rows& rows() const { return rows_; }

  // Rows that are announced and not in memory may have to be sent before those that are.
  bool may_have_sooner() const { return may_have_more_ && !rows_.empty() && cursor_ < rows_.back().key; }

  // A committed row. True: taken into memory; without room the last one there makes way for it. False: it
  // stays in the table and will be fetched. A strict lane takes only the row that directly follows the last
  // one it knows, because handoffs may overtake each other.
  bool offer(QueueRow row, bool has_room);

  // The table may hold rows that are not in memory (a takeover, an announcement without the row).
  void expect_more();
  void expect_more_from(const RowKey& key);

  // A row that was taken and is to be sent later, or again. Always fits.
  void put_back(QueueRow row);

  // Drops rows beyond `keep`, the last ones first; they are fetched again when there is room.
  std::vector<QueueRow> shrink(size_t keep);

  QueueRow take(size_t index = 0);
  std::optional<QueueRow> remove(model::DeliveryId id);  // nothing: it is not in memory

  // Sets the body of a row, or drops those of all rows.
  void set_body(size_t index, std::shared_ptr<const model::EventContent> event);
  void drop_bodies();

  // Drops the rows in memory; from now on in that order. The table is read again if anything can be there.
  void restart(Order order);

  // One fetch at a time: rows with key >= the returned cursor, in order. Finish with fetched() or
  // fetch_failed().
  RowKey begin_fetch();
  // `is_last`: the table had no further rows at that time. `is_known(id)`: the row is in memory or being
  // settled. Returns how many rows were new.
  size_t fetched(std::vector<QueueRow> rows, bool is_last,
                 const base::UniqueFunction<bool(model::DeliveryId)>& is_known);
  void fetch_failed();

 private:
  RowKey first_missing() const;
  void drop_after(const RowKey& key);
  void insert(QueueRow row);
  void clear();
  void end_fetch();
  void add_bytes(size_t bytes);
  void remove_bytes(size_t bytes);

  BufferTotals& totals_;
  Order order_;
  Rows rows_;
  size_t body_bytes_ = 0;
  bool may_have_more_ = false;
  bool is_fetching_ = false;
  bool is_fetch_void_ = false;            // restarted meanwhile: its rows are not taken
  RowKey cursor_{};                       // everything before it in the table is in memory or gone
  std::optional<RowKey> announced_;       // the first row announced while a fetch was running
  std::optional<int64_t> last_position_;  // strict: of the last row taken in
};

}  // namespace postrider::delivery
