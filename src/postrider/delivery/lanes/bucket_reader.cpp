#include "postrider/delivery/lanes/bucket_reader.hpp"

#include <algorithm>
#include <utility>

#include "postrider/delivery/lanes/fetch.sql.hpp"
#include "postrider/delivery/lanes/read_row.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr int kLanesPerScan = 1'000;
constexpr size_t kPatrolsPerRound = 64;
constexpr auto kRetryPause = 200ms;
constexpr auto kDatabaseWait = 5s;  // then it is tried again, so that a stop does not hang on it

// Where to read on in each bucket of a range.
struct FoundPage {
  FoundPage() = default;
  FoundPage(std::vector<int> of, base::Uuid first) : buckets(std::move(of)), from(buckets.size(), first) {}

  std::vector<int> buckets;
  std::vector<base::Uuid> from;

  // Only a full page has a next one. Its last row is read again; by then it is known, or still in the table.
  FoundPage after(const pg::RowsOf<sql::rows_of_range>& rows, size_t full) const {
    FoundPage next;
    for (const int bucket : buckets) {
      size_t count = 0;
      base::Uuid last;
      for (const auto& row : rows) {
        if (row.bucket != bucket) continue;
        ++count;
        last = std::max(last, row.id);
      }
      if (count < full) continue;
      next.buckets.push_back(bucket);
      next.from.push_back(last);
    }
    return next;
  }
};

}  // namespace

size_t patrolled_at_once(size_t owned_buckets) {
  return (owned_buckets + kPatrolsPerRound - 1) / kPatrolsPerRound;
}

BucketReader::BucketReader(BucketReaderTools tools, Options options, LaneEvents& events)
    : tools_(tools), options_(options), events_(events), patrol_timer_(tools.loop) {
  patrol_timer_.call_after(options_.patrol_interval, [this] { patrol(); });
}

void BucketReader::read(int bucket) {
  LaneTable::Bucket* const found = tools_.lanes.find_bucket(bucket);
  if (found == nullptr) return;
  found->is_scanning = true;
  tasks_.spawn(scan(bucket, found->epoch, Scan::everything));
}

void BucketReader::read_all() {
  for (auto& [bucket, state] : tools_.lanes.buckets()) {
    state.is_scanning = true;
    tasks_.spawn(scan(bucket, state.epoch, Scan::everything));
  }
}

void BucketReader::patrol() {
  patrol_timer_.call_after(options_.patrol_interval, [this] { patrol(); });
  auto& buckets = tools_.lanes.buckets();
  if (buckets.empty()) return;
  for (size_t i = patrolled_at_once(buckets.size()); i > 0; --i) {
    auto next = buckets.upper_bound(patrolled_);
    if (next == buckets.end()) next = buckets.begin();
    patrolled_ = next->first;
    if (!next->second.is_scanning && !next->second.is_draining)
      tasks_.spawn(scan(next->first, next->second.epoch, Scan::idle_lanes));
  }
}

bool BucketReader::is_scan_current(int bucket, int64_t epoch) const {
  return !is_stopping_ && tools_.lanes.has_bucket(bucket, epoch);
}

// Walks over the lanes that have rows in the bucket.
runtime::Task<void> BucketReader::scan(int bucket, int64_t epoch, Scan what) {
  runtime::Wakeup pause(tools_.loop);
  base::Uuid after;
  while (is_scan_current(bucket, epoch)) {
    bool is_last = false, has_failed = false;
    try {
      pg::Batch page;
      const auto pending =
          page.add(sql::lanes_of_bucket{.bucket = bucket, .after = after, .lanes_max = kLanesPerScan});
      const auto deadline = base::BootClock::now() + kDatabaseWait;
      pg::Results results = co_await tools_.link.run(std::move(page), deadline);
      if (!is_scan_current(bucket, epoch)) co_return;
      const auto found = results.take(pending);
      for (const auto& row : found) {
        after = row.endpoint_id;
        take_lane({row.endpoint_id}, bucket, what);
      }
      is_last = found.size() < static_cast<size_t>(kLanesPerScan);
    } catch (const pg::Error& error) {
      telemetry::log_warn("bucket_scan_failed").field("bucket", bucket).field("error", error.what());
      has_failed = true;
    }
    if (has_failed) co_await pause.wait_for(kRetryPause);
    if (is_last) break;
  }
  if (is_scan_current(bucket, epoch)) tools_.lanes.find_bucket(bucket)->is_scanning = false;
}

void BucketReader::take_lane(model::EndpointId endpoint, int bucket, Scan what) {
  const LanePtr lane = tools_.lanes.get_or_create(endpoint, bucket);
  for (const Turn turn : kBothTurns) {
    RowBuffer& buffer = lane->buffer(turn);
    // A lane that is working through a backlog needs no patrol: reading it from the start again could mean
    // reading many dead rows.
    if (what == Scan::idle_lanes && buffer.may_have_more()) continue;
    buffer.expect_more();
  }
  events_.changed(lane);
}

void BucketReader::read(FoundRows found) {
  std::erase_if(found.buckets, [this](int bucket) { return !tools_.lanes.has_bucket(bucket); });
  if (!found.buckets.empty()) tasks_.spawn(fetch_found(std::move(found)));
}

template <class Rows>
void BucketReader::take_found(const Rows& rows) {
  const Now at = now();
  for (const auto& found : rows) {
    if (!tools_.lanes.has_bucket(found.bucket)) continue;
    QueueRow row = read_row(found);
    const LanePtr lane = tools_.lanes.get_or_create({found.endpoint_id}, found.bucket);
    tools_.seen.fetched(row, at);  // IDs of several nodes interleave: it may be one of this node
    if (!lane->is_known(row.id()) && !tools_.seen.was_canceled(row.id()))
      offer_row(lane, std::move(row), found.retry);
  }
}

// In pages, because a range can be wide and hold hundreds of thousands of rows of other publishes.
runtime::Task<void> BucketReader::fetch_found(FoundRows found) {
  runtime::Wakeup pause(tools_.loop);
  FoundPage page(found.buckets, found.first.uuid);
  while (!is_stopping_ && !page.buckets.empty()) {
    bool has_failed = false;
    try {
      pg::Batch fetch;
      const auto pending =
          fetch.add(sql::rows_of_range{.buckets = page.buckets,
                                       .first_ids = page.from,
                                       .last = found.last.uuid,
                                       .rows_max = static_cast<int>(options_.found_rows_max)});
      const auto deadline = base::BootClock::now() + kDatabaseWait;
      pg::Results results = co_await tools_.link.run(std::move(fetch), deadline);
      const auto rows = results.take(pending);
      take_found(rows);
      page = page.after(rows, options_.found_rows_max);
    } catch (const pg::Error& error) {
      telemetry::log_warn("discovery_failed").field("error", error.what());
      has_failed = true;
    }
    if (has_failed) co_await pause.wait_for(kRetryPause);
  }
}

void BucketReader::offer(std::vector<model::CommittedDelivery> deliveries) {
  const base::Timestamp at = tools_.clock.now();
  for (model::CommittedDelivery& delivery : deliveries) {
    if (!tools_.lanes.has_bucket(delivery.bucket) || tools_.seen.was_fetched(delivery.id) ||
        tools_.seen.was_canceled(delivery.id))
      continue;
    QueueRow row;
    row.key = {delivery.position, delivery.due_at, delivery.id};
    row.event_id = delivery.event->id;
    row.created_at = delivery.created_at;
    row.event = std::move(delivery.event);
    const LanePtr lane = tools_.lanes.get_or_create(delivery.endpoint_id, delivery.bucket);
    if (SeenDeliveries::is_too_old(row, at)) {
      // It may be done already. The table knows.
      lane->buffer(Turn::first).expect_more_from(row.key);
      events_.changed(lane);
      continue;
    }
    offer_row(lane, std::move(row), false);
  }
}

void BucketReader::offer_row(const LanePtr& lane, QueueRow row, bool is_retry) {
  RowBuffer& buffer = lane->buffer(is_retry ? Turn::retry : Turn::first);
  buffer.offer(std::move(row), tools_.budget.has_room(buffer));
  events_.changed(lane);
}

runtime::Task<void> BucketReader::stop() {
  is_stopping_ = true;
  patrol_timer_.cancel();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
