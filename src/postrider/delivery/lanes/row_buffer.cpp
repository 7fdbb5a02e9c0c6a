#include "postrider/delivery/lanes/row_buffer.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::delivery {

namespace {
constexpr size_t kIdleCapacity = 16;
}  // namespace

bool RowBuffer::offer(QueueRow row, bool has_room) {
  const bool follows = order_ == Order::by_due || last_position_ == row.key.position - 1;
  const bool knows_all = !may_have_more_ && !is_fetching_;
  const bool is_before_cursor = order_ == Order::by_due && may_have_more_ && row.key < cursor_;
  const bool is_last = rows_.empty() || rows_.back().key < row.key;
  if (!(knows_all && follows) && !is_before_cursor) {
    expect_more_from(follows || may_have_more_ ? row.key : first_missing());
    return false;
  }
  if (!has_room && is_last) {
    expect_more_from(row.key);
    return false;
  }
  last_position_ = row.key.position;
  insert(std::move(row));
  if (!has_room) shrink(rows_.size() - 1);
  return true;
}

// Positions are assigned in commit order, so rows that were overtaken are already in the table.
RowKey RowBuffer::first_missing() const {
  RowKey key;
  if (last_position_) key.position = *last_position_ + 1;
  return key;
}

void RowBuffer::expect_more() {
  expect_more_from(RowKey{});
}

void RowBuffer::expect_more_from(const RowKey& key) {
  if (is_fetching_) announced_ = announced_ ? std::min(*announced_, key) : key;
  cursor_ = may_have_more_ ? std::min(cursor_, key) : key;
  may_have_more_ = true;
}

void RowBuffer::put_back(QueueRow row) {
  insert(std::move(row));
}

std::vector<QueueRow> RowBuffer::shrink(size_t keep) {
  std::vector<QueueRow> given_up;
  while (rows_.size() > keep) {
    remove_bytes(rows_.back().body_bytes());
    --totals_.rows;
    given_up.push_back(std::move(rows_.back()));
    rows_.pop_back();
  }
  if (!given_up.empty()) expect_more_from(given_up.back().key);
  if (!given_up.empty()) last_position_.reset();
  return given_up;
}

QueueRow RowBuffer::take(size_t index) {
  CHECK(index < rows_.size());
  QueueRow row = std::move(rows_[index]);
  remove_bytes(row.body_bytes());
  --totals_.rows;
  rows_.erase(rows_.begin() + static_cast<ptrdiff_t>(index));
  // A lane that had a backlog does not keep room for the next one.
  if (rows_.empty() && rows_.capacity() > kIdleCapacity) Rows().swap(rows_);
  return row;
}

std::optional<QueueRow> RowBuffer::remove(model::DeliveryId id) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [id](const QueueRow& row) { return row.id() == id; });
  if (found == rows_.end()) return std::nullopt;
  return take(static_cast<size_t>(found - rows_.begin()));
}

void RowBuffer::restart(Order order) {
  const bool has_rows = !rows_.empty() || may_have_more_ || is_fetching_;
  order_ = order;
  clear();
  last_position_.reset();
  is_fetch_void_ = is_fetching_;
  if (has_rows) expect_more();
}

void RowBuffer::clear() {
  totals_.rows -= rows_.size();
  rows_.clear();
  remove_bytes(body_bytes_);
}

void RowBuffer::add_bytes(size_t bytes) {
  body_bytes_ += bytes;
  totals_.body_bytes += bytes;
}

void RowBuffer::remove_bytes(size_t bytes) {
  body_bytes_ -= bytes;
  totals_.body_bytes -= bytes;
}

RowKey RowBuffer::begin_fetch() {
  CHECK(!is_fetching_);
  is_fetching_ = true;
  announced_.reset();
  return cursor_;
}

// Invariant when it returns: rows_ has every row of the table with a key up to cursor_, except outstanding
// ones; and if may_have_more_ is false, every row of the table.
//
// The fetch saw the table as it was when the statement ran. Since then, on this thread,
// - rows were offered by a handoff: offer() kept them out, because is_fetching_ is set, and announced them;
// - rows were taken, sent and perhaps settled: is_known() drops those still outstanding, and those settled
//   cannot be in the result, because the statement ran after the settles that were sent before it;
// - the ordering changed (restart()): the rows are in the wrong order, so the result is dropped.
size_t RowBuffer::fetched(std::vector<QueueRow> rows, bool is_last,
                          const base::UniqueFunction<bool(model::DeliveryId)>& is_known) {
  if (is_fetch_void_) {
    fetch_failed();
    return 0;
  }
  // The next fetch starts at the last row itself, not after it: a row with the same key prefix may be
  // committed later. The last row is known by then, and is dropped.
  if (!rows.empty()) {
    cursor_ = rows.back().key;
    last_position_ = rows.back().key.position;
  }
  size_t fresh = 0;
  for (QueueRow& row : rows) {
    if (is_known(row.id())) continue;
    insert(std::move(row));
    ++fresh;
  }
  may_have_more_ = !is_last;
  // Rows that were put back during the fetch can have keys after the cursor, with rows between that only the
  // table has. They leave memory, and come again in their order.
  if (!is_last) drop_after(cursor_);
  // Only now: an announcement that arrived during the fetch may be before the cursor that was just set.
  end_fetch();
  return fresh;
}

void RowBuffer::drop_after(const RowKey& key) {
  const auto first =
      std::upper_bound(rows_.begin(), rows_.end(), key,
                       [](const RowKey& sought, const QueueRow& row) { return sought < row.key; });
  const auto keep = static_cast<size_t>(first - rows_.begin());
  if (keep < rows_.size()) shrink(keep);
}

void RowBuffer::fetch_failed() {
  may_have_more_ = true;
  end_fetch();
}

void RowBuffer::end_fetch() {
  CHECK(is_fetching_);
  is_fetching_ = false;
  is_fetch_void_ = false;
  if (!announced_) return;
  may_have_more_ = true;
  cursor_ = std::min(cursor_, *announced_);
  announced_.reset();
}

void RowBuffer::set_body(size_t index, std::shared_ptr<const model::EventContent> event) {
  remove_bytes(rows_[index].body_bytes());
  rows_[index].event = std::move(event);
  add_bytes(rows_[index].body_bytes());
}

void RowBuffer::drop_bodies() {
  if (body_bytes_ == 0) return;
  for (QueueRow& row : rows_) row.event.reset();
  remove_bytes(body_bytes_);
}

void RowBuffer::insert(QueueRow row) {
  add_bytes(row.body_bytes());
  ++totals_.rows;
  if (rows_.empty() || rows_.back().key < row.key) {
    rows_.push_back(std::move(row));
    return;
  }
  const auto before =
      std::upper_bound(rows_.begin(), rows_.end(), row.key,
                       [](const RowKey& key, const QueueRow& other) { return key < other.key; });
  if (rows_.size() > 1) {
    rows_.insert(before, std::move(row));
    return;
  }
  // Before a single one: devector's own way asserts something untrue there (Boost 1.81).
  rows_.push_back(std::move(row));
  std::swap(rows_.front(), rows_.back());
}

}  // namespace postrider::delivery
