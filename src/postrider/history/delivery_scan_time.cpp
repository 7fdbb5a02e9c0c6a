// Newest first: the attempts in the order of their deliveries' IDs, merged with the queue rows in the same
// range of IDs.
#include <algorithm>
#include <utility>

#include "postrider/history/delivery_scan_steps.hpp"
#include "postrider/history/newest_days.hpp"

namespace postrider::history {

namespace {

constexpr int kScannedMax = 2'000;        // attempts in one look
constexpr int kSpare = 20;                // rows for deliveries with several attempts
constexpr int kLaneRowsMax = 500;         // of an endpoint or tenant: up to this many are all read
constexpr int kLanesMax = 500;            // of a tenant
constexpr int kQueueScannedMax = 20'000;  // over all buckets

struct Window {
  base::Uuid before;  // exclusive
  base::Uuid from;    // inclusive
};

bool wants_queued(const DeliveryFilter& filter) {
  return !filter.status;
}

// Each look reads four times as many.
int rows_wanted(const DeliveryFilter& filter, int look, int most) {
  return std::min(most, (2 * filter.limit + kSpare) << std::min(2 * look, 16));
}

// Newest first, through the best index for the filter.
runtime::Task<pg::RowList<sql::HistoryRow>> history_rows(pg::Link& link, const DeliveryFilter& filter,
                                                         const Window& window, int rows_max) {
  const auto& [before, from] = window;
  pg::RowList<sql::HistoryRow> rows;
  if (filter.status == DeliveryStatus::canceled && filter.tenant)
    rows = co_await link.run(
        sql::canceled_of_tenant{.before = before, .from = from, .tenant = *filter.tenant, .rows = rows_max});
  else if (filter.status == DeliveryStatus::canceled)
    rows = co_await link.run(sql::canceled_of_all{.before = before, .from = from, .rows = rows_max});
  else if (filter.endpoint)
    rows = co_await link.run(sql::history_of_endpoint{
        .before = before, .from = from, .endpoint = filter.endpoint->id.uuid, .rows = rows_max});
  else if (filter.tenant)
    rows = co_await link.run(
        sql::history_of_tenant{.before = before, .from = from, .tenant = *filter.tenant, .rows = rows_max});
  else
    rows = co_await link.run(sql::history_of_all{.before = before, .from = from, .rows = rows_max});
  co_return rows;
}

runtime::Task<std::vector<base::Uuid>> dead_letter_ids(pg::Link& link, const DeliveryFilter& filter,
                                                       const Window& window, int rows_max) {
  const auto& [before, from] = window;
  pg::RowList<sql::DeadLetterIdRow> rows;
  if (filter.endpoint)
    rows = co_await link.run(sql::dead_letter_ids_of_endpoint{
        .before = before, .from = from, .endpoint = filter.endpoint->id.uuid, .rows = rows_max});
  else if (filter.tenant)
    rows = co_await link.run(sql::dead_letter_ids_of_tenant{
        .before = before, .from = from, .tenant = *filter.tenant, .rows = rows_max});
  else
    rows = co_await link.run(sql::dead_letter_ids_of_all{.before = before, .from = from, .rows = rows_max});
  std::vector<base::Uuid> ids;
  for (const auto& row : rows) ids.push_back(row.delivery_id);
  co_return ids;
}

// The newest rows are spread over the buckets, so only a share is read of each.
int rows_share(size_t buckets) {
  return std::max(1, static_cast<int>(buckets) / 4);
}

struct Covered {
  std::vector<Delivery> deliveries;
  base::Uuid from;  // all deliveries from this ID on were read
};

runtime::Task<std::vector<Delivery>> histories_of(pg::Link& link, std::vector<base::Uuid> ids) {
  std::vector<Delivery> none;
  if (ids.empty()) co_return none;
  std::sort(ids.begin(), ids.end());
  const auto rows = co_await link.run(
      sql::history_of_ids{.deliveries = ids, .smallest = ids.front(), .largest = ids.back()});
  co_return read_history(rows);
}

runtime::Task<Covered> read_dead_letters(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                         int look) {
  const int wanted = rows_wanted(filter, look, kScannedMax);
  std::vector<base::Uuid> ids = co_await dead_letter_ids(link, filter, window, wanted);
  Covered covered{.deliveries = {}, .from = window.from};
  if (ids.size() == static_cast<size_t>(wanted)) covered.from = ids.back();
  covered.deliveries = co_await histories_of(link, std::move(ids));
  co_return covered;
}

runtime::Task<Covered> read_ended(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                  int look) {
  const int wanted = rows_wanted(filter, look, kScannedMax);
  const std::vector<base::Uuid> bounds = lower_bounds(window.before, window.from, base::wall_now());
  pg::RowList<sql::HistoryRow> rows;
  for (const base::Uuid& from : bounds) {
    const Window part{.before = window.before, .from = from};
    rows = co_await history_rows(link, filter, part, wanted);
    if (rows.size() == static_cast<size_t>(wanted)) break;
  }
  Covered covered{.deliveries = read_history(rows), .from = window.from};
  if (rows.size() == static_cast<size_t>(wanted)) {
    // Attempts of the last delivery may be missing, so it is left to the next step, unless it is the only
    // one.
    if (covered.deliveries.size() > 1) covered.deliveries.pop_back();
    covered.from = covered.deliveries.back().id.uuid;
  }
  // The index of canceled deliveries has only their last row.
  if (filter.status == DeliveryStatus::canceled) {
    std::vector<base::Uuid> ids;
    for (const Delivery& delivery : covered.deliveries) ids.push_back(delivery.id.uuid);
    covered.deliveries = co_await histories_of(link, std::move(ids));
  }
  co_return covered;
}

struct Lanes {
  std::vector<int32_t> buckets;
  std::vector<base::Uuid> endpoints;
};

// The lanes that match the filter, or no value if there are too many to read one by one.
runtime::Task<std::optional<Lanes>> lanes_of(pg::Link& link, const DeliveryFilter& filter) {
  Lanes lanes;
  if (filter.endpoint) {
    lanes.buckets.push_back(filter.endpoint->bucket);
    lanes.endpoints.push_back(filter.endpoint->id.uuid);
    co_return lanes;
  }
  if (!filter.tenant) co_return std::nullopt;
  const auto rows =
      co_await link.run(sql::lanes_of_tenant{.tenant = *filter.tenant, .after = "", .rows = kLanesMax + 1});
  if (rows.size() > static_cast<size_t>(kLanesMax)) co_return std::nullopt;
  for (const auto& row : rows) {
    lanes.endpoints.push_back(row.id);
    lanes.buckets.push_back(row.bucket);
  }
  co_return lanes;
}

runtime::Task<std::vector<int32_t>> buckets_of(pg::Link& link, const DeliveryFilter& filter) {
  std::vector<int32_t> buckets;
  if (filter.endpoint) {
    buckets.push_back(filter.endpoint->bucket);
    co_return buckets;
  }
  const auto rows = co_await link.run(sql::all_buckets{});
  buckets = rows.front().buckets;
  co_return buckets;
}

// The queued deliveries in the window. If the matching lanes have few rows, all of them are read; otherwise a
// limited number of each bucket's newest rows.
runtime::Task<Covered> read_queue(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                  int look) {
  Covered covered{.deliveries = {}, .from = window.from};
  const std::optional<Lanes> lanes = co_await lanes_of(link, filter);
  if (lanes) {
    const auto rows = co_await link.run(sql::queued_of_lanes{
        .buckets = lanes->buckets, .endpoints = lanes->endpoints, .rows = kLaneRowsMax + 1});
    if (rows.size() <= static_cast<size_t>(kLaneRowsMax)) {
      for (const auto& row : rows) {
        Delivery delivery = read_queued(row);
        if (delivery.id.uuid < window.before && delivery.id.uuid >= window.from)
          covered.deliveries.push_back(std::move(delivery));
      }
      co_return covered;
    }
  }
  const std::vector<int32_t> buckets = co_await buckets_of(link, filter);
  // A statement that filters may read many rows; without a filter every row is returned and needs its names.
  const int most = filter.tenant || filter.endpoint ? kQueueScannedMax : kScannedMax;
  const int per_bucket = std::max(2, rows_wanted(filter, look, most) / rows_share(buckets.size()));
  std::optional<base::Uuid> endpoint;
  if (filter.endpoint) endpoint = filter.endpoint->id.uuid;
  const auto rows = co_await link.run(sql::queued_of_range{.rows_per_bucket = per_bucket,
                                                           .buckets = buckets,
                                                           .before = window.before,
                                                           .from = window.from,
                                                           .tenant = filter.tenant,
                                                           .endpoint = endpoint});
  for (const auto& row : rows) {
    Delivery delivery = read_queued(row);
    if (row.is_edge) covered.from = std::max(covered.from, delivery.id.uuid);
    const bool is_wanted = (!filter.tenant || delivery.tenant == *filter.tenant) &&
                           (!filter.endpoint || delivery.endpoint == filter.endpoint->id);
    if (is_wanted) covered.deliveries.push_back(std::move(delivery));
  }
  co_return covered;
}

// Both in one list, newest first, without the part that only one of them has read.
std::vector<Delivery> merge(Covered ended, Covered queued, const base::Uuid& from) {
  std::vector<Delivery> all = std::move(queued.deliveries);
  std::sort(all.begin(), all.end(), [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  const size_t queued_count = all.size();
  for (Delivery& delivery : ended.deliveries) {
    const auto end = all.begin() + static_cast<ptrdiff_t>(queued_count);
    const auto known = std::lower_bound(all.begin(), end, delivery,
                                        [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
    if (known == end || known->id != delivery.id)
      all.push_back(std::move(delivery));
    else if (delivery.status == DeliveryStatus::retrying)
      add_history(*known, delivery);
    else
      *known = std::move(delivery);  // it ended after the queue was read
  }
  std::erase_if(all, [&from](const Delivery& delivery) { return delivery.id.uuid < from; });
  std::sort(all.begin(), all.end(), [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  return all;
}

}  // namespace

// Invariant: the chunk has every delivery with an ID in [chunk.next, window.before) that matches the filter,
// each once. The queue and the history are read separately, each only as far down as its limit of rows. So
// the chunk ends at the higher of the two lower ends (`from`): below it, one of the two is incomplete, and
// what the other one has there is read again with the next cursor.
//
// A delivery moves from the queue to the history while this runs, never back. The queue is read first, so a
// delivery that ends between the two statements is found in both, and merge() keeps the newer state. In the
// other order it would be in neither.
runtime::Task<std::optional<ScanChunk>> scan_by_time(pg::Link& link, const DeliveryFilter& filter,
                                                     const ScanFrom& from_where) {
  const std::string& after = from_where.after;
  Window window{.before = filter.before, .from = filter.from};
  if (!after.empty()) {
    const auto last = base::Uuid::from_hex(after);
    if (!last) co_return std::nullopt;
    window.before = std::min(window.before, *last);
  }
  const bool is_dead = filter.status == DeliveryStatus::dead_letter;
  Covered queued{.deliveries = {}, .from = window.from};
  if (wants_queued(filter)) queued = co_await read_queue(link, filter, window, from_where.look);
  Covered ended;
  if (is_dead)
    ended = co_await read_dead_letters(link, filter, window, from_where.look);
  else
    ended = co_await read_ended(link, filter, window, from_where.look);
  const base::Uuid from = std::max(queued.from, ended.from);
  ScanChunk chunk;
  chunk.deliveries = merge(std::move(ended), std::move(queued), from);
  for (const Delivery& delivery : chunk.deliveries) chunk.cursors.push_back(delivery.id.uuid.hex());
  if (from > filter.from) chunk.next = from.hex();
  co_return chunk;
}

runtime::Task<void> add_histories(pg::Link& link, std::vector<Delivery>& deliveries) {
  std::vector<base::Uuid> ids;
  for (const Delivery& delivery : deliveries)
    if (delivery.attempts > 0 && !delivery.last_attempt_at) ids.push_back(delivery.id.uuid);
  const std::vector<Delivery> histories = co_await histories_of(link, std::move(ids));
  for (Delivery& delivery : deliveries) {
    const auto found =
        std::lower_bound(histories.begin(), histories.end(), delivery.id,
                         [](const Delivery& history, model::DeliveryId id) { return history.id > id; });
    if (found != histories.end() && found->id == delivery.id) add_history(delivery, *found);
  }
}

}  // namespace postrider::history
