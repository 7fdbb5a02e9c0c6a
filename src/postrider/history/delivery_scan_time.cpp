// Newest first: what has ended (or was tried) in order of id, and beside it what is in the queue in the same
// range of ids.
#include <algorithm>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery_scan_steps.hpp"
#include "postrider/history/newest_days.hpp"

namespace postrider::history {

namespace {

constexpr int kScannedMax = 2'000;        // attempts in one look
constexpr int kSpare = 20;                // deliveries have a few attempts at most
constexpr int kLaneRowsMax = 500;         // of an endpoint or tenant: up to so many are simply read
constexpr int kLanesMax = 500;            // of a tenant
constexpr int kQueueScannedMax = 20'000;  // over all buckets

struct Window {
  base::Uuid before;  // exclusive
  base::Uuid from;    // inclusive
};

bool wants_live(const DeliveryFilter& filter) {
  return !filter.status;
}

// Four times as many with each look.
int rows_wanted(const DeliveryFilter& filter, int look, int most) {
  return std::min(most, (2 * filter.limit + kSpare) << std::min(2 * look, 16));
}

pg::Batch history_statement(const DeliveryFilter& filter, const Window& window, int rows) {
  pg::Batch batch;
  if (filter.status == DeliveryStatus::canceled) {
    if (filter.tenant)
      batch.with(sql::canceled_of_tenant, window.before, window.from, rows, *filter.tenant);
    else
      batch.with(sql::canceled_of_all, window.before, window.from, rows);
  } else if (filter.endpoint) {
    batch.with(sql::history_of_endpoint, window.before, window.from, rows, filter.endpoint->id.uuid);
  } else if (filter.tenant) {
    batch.with(sql::history_of_tenant, window.before, window.from, rows, *filter.tenant);
  } else {
    batch.with(sql::history_of_all, window.before, window.from, rows);
  }
  return batch;
}

pg::Batch dead_statement(const DeliveryFilter& filter, const Window& window, int rows) {
  pg::Batch batch;
  if (filter.endpoint)
    batch.with(sql::dead_of_endpoint, window.before, window.from, rows, filter.endpoint->id.uuid);
  else if (filter.tenant)
    batch.with(sql::dead_of_tenant, window.before, window.from, rows, *filter.tenant);
  else
    batch.with(sql::dead_of_all, window.before, window.from, rows);
  return batch;
}

// The newest rows are spread over the buckets: of each only a part is looked at.
int rows_share(size_t buckets) {
  return std::max(1, static_cast<int>(buckets) / 4);
}

struct Covered {
  std::vector<Delivery> deliveries;
  base::Uuid from;  // everything from here on was seen
};

runtime::Task<std::vector<Delivery>> histories_of(pg::Link& link, std::vector<base::Uuid> ids) {
  std::vector<Delivery> none;
  if (ids.empty()) co_return none;
  std::sort(ids.begin(), ids.end());
  pg::Params params(ids, ids.front(), ids.back());
  const pg::Rows rows = co_await link.run_one(sql::history_of_ids, std::move(params));
  co_return read_history(rows);
}

runtime::Task<Covered> read_dead(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                 int look) {
  const int wanted = rows_wanted(filter, look, kScannedMax);
  pg::Batch batch = dead_statement(filter, window, wanted);
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  std::vector<base::Uuid> ids;
  for (size_t row = 0; row < found[0].size(); ++row) ids.push_back(found[0].get<base::Uuid>(row, 0));
  Covered covered{.deliveries = {}, .from = window.from};
  if (ids.size() == static_cast<size_t>(wanted)) covered.from = ids.back();
  covered.deliveries = co_await histories_of(link, std::move(ids));
  co_return covered;
}

runtime::Task<Covered> read_ended(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                  int look) {
  const int wanted = rows_wanted(filter, look, kScannedMax);
  const std::vector<base::Uuid> bounds = lower_bounds(window.before, window.from, base::wall_now());
  std::vector<pg::Rows> found;
  for (const base::Uuid& from : bounds) {
    const Window part{.before = window.before, .from = from};
    pg::Batch batch = history_statement(filter, part, wanted);
    found = co_await link.run(std::move(batch));
    if (found[0].size() == static_cast<size_t>(wanted)) break;
  }
  Covered covered{.deliveries = read_history(found[0]), .from = window.from};
  if (found[0].size() == static_cast<size_t>(wanted)) {
    // Of the last one some attempts may be missing: it belongs to the next step, unless it is all there is.
    if (covered.deliveries.size() > 1) covered.deliveries.pop_back();
    covered.from = covered.deliveries.back().id.uuid;
  }
  // Of a canceled delivery that index shows the end only.
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

// The lanes in question, or nothing when there are too many of them to be looked at one by one.
runtime::Task<std::optional<Lanes>> lanes_of(pg::Link& link, const DeliveryFilter& filter) {
  Lanes lanes;
  if (filter.endpoint) {
    lanes.buckets.push_back(filter.endpoint->bucket);
    lanes.endpoints.push_back(filter.endpoint->id.uuid);
    co_return lanes;
  }
  if (!filter.tenant) co_return std::nullopt;
  pg::Params params(*filter.tenant, "", kLanesMax + 1);
  const pg::Rows rows = co_await link.run_one(sql::lanes_of_tenant, std::move(params));
  if (rows.size() > static_cast<size_t>(kLanesMax)) co_return std::nullopt;
  for (size_t row = 0; row < rows.size(); ++row) {
    lanes.endpoints.push_back(rows.get<base::Uuid>(row, 1));
    lanes.buckets.push_back(rows.get<int32_t>(row, 2));
  }
  co_return lanes;
}

runtime::Task<std::vector<int32_t>> buckets_of(pg::Link& link, const DeliveryFilter& filter) {
  std::vector<int32_t> buckets;
  if (filter.endpoint) {
    buckets.push_back(filter.endpoint->bucket);
    co_return buckets;
  }
  const pg::Rows rows = co_await link.run_one(sql::buckets);
  buckets = rows.get<std::vector<int32_t>>(0, 0);
  co_return buckets;
}

// What is in the queue within the window. Few rows of the lanes in question are read as they are; otherwise
// each bucket is read from the newest row down, a limited number of them.
runtime::Task<Covered> read_queue(pg::Link& link, const DeliveryFilter& filter, const Window& window,
                                  int look) {
  Covered covered{.deliveries = {}, .from = window.from};
  const std::optional<Lanes> lanes = co_await lanes_of(link, filter);
  if (lanes) {
    pg::Params params(lanes->buckets, lanes->endpoints, kLaneRowsMax + 1);
    const pg::Rows rows = co_await link.run_one(sql::live_of_lanes, std::move(params));
    if (rows.size() <= static_cast<size_t>(kLaneRowsMax)) {
      for (size_t row = 0; row < rows.size(); ++row) {
        Delivery delivery = read_live(rows, row);
        if (delivery.id.uuid < window.before && delivery.id.uuid >= window.from)
          covered.deliveries.push_back(std::move(delivery));
      }
      co_return covered;
    }
  }
  const std::vector<int32_t> buckets = co_await buckets_of(link, filter);
  // Where the statement filters, it may look at many; otherwise each row comes here and is named.
  const int most = filter.tenant || filter.endpoint ? kQueueScannedMax : kScannedMax;
  const int per_bucket = std::max(2, rows_wanted(filter, look, most) / rows_share(buckets.size()));
  std::optional<base::Uuid> endpoint;
  if (filter.endpoint) endpoint = filter.endpoint->id.uuid;
  pg::Params params(buckets, window.before, window.from, per_bucket, filter.tenant, endpoint);
  const pg::Rows rows = co_await link.run_one(sql::live_of_range, std::move(params));
  for (size_t row = 0; row < rows.size(); ++row) {
    Delivery delivery = read_live(rows, row);
    if (rows.get<bool>(row, 8)) covered.from = std::max(covered.from, delivery.id.uuid);
    const bool is_wanted = (!filter.tenant || delivery.tenant == *filter.tenant) &&
                           (!filter.endpoint || delivery.endpoint == filter.endpoint->id);
    if (is_wanted) covered.deliveries.push_back(std::move(delivery));
  }
  co_return covered;
}

// Both in one list, newest first, without what lies below the part that both have seen.
std::vector<Delivery> merge(Covered ended, Covered live, const base::Uuid& from) {
  std::vector<Delivery> all = std::move(live.deliveries);
  std::sort(all.begin(), all.end(), [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  const size_t lives = all.size();
  for (Delivery& delivery : ended.deliveries) {
    const auto end = all.begin() + static_cast<ptrdiff_t>(lives);
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
  Covered live{.deliveries = {}, .from = window.from};
  // The queue first: what moves from it to the history in between is then seen in both, not in neither.
  if (wants_live(filter)) live = co_await read_queue(link, filter, window, from_where.look);
  Covered ended;
  if (is_dead)
    ended = co_await read_dead(link, filter, window, from_where.look);
  else
    ended = co_await read_ended(link, filter, window, from_where.look);
  const base::Uuid from = std::max(live.from, ended.from);
  ScanChunk chunk;
  chunk.deliveries = merge(std::move(ended), std::move(live), from);
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
