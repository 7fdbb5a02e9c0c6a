// Queued deliveries, lane by lane, in the order of sending.
#include <charconv>
#include <utility>

#include "postrider/history/delivery_scan_steps.hpp"

namespace postrider::history {

namespace {

constexpr int kLanesPerStep = 500;
constexpr int kScannedMax = 2'000;  // rows in one step when a filter may drop most of them

// A row of the index queue_lane within its lane.
struct LaneKey {
  bool retry = false;
  int64_t position = INT64_MIN;
  base::Timestamp due_at = pg::minus_infinity;
  base::Uuid id;
};

// The row of a lane that a scan has reached. The lanes of a tenant are in the order of their endpoints'
// public IDs (`name`); over all tenants they are in the order of bucket and endpoint.
struct Place {
  std::string name;
  int bucket = 0;
  base::Uuid endpoint;
  LaneKey key;

  std::string text() const {
    return name + "," + std::to_string(bucket) + "," + endpoint.hex() + "," + (key.retry ? "1" : "0") + "," +
           std::to_string(key.position) + "," + std::to_string(key.due_at.time_since_epoch().count()) + "," +
           key.id.hex();
  }
  static std::optional<Place> parse(std::string_view text);
};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Place> Place::parse(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() != 7) return std::nullopt;
  Place place;
  int64_t due = 0;
  const auto endpoint = base::Uuid::from_hex(parts[2]), id = base::Uuid::from_hex(parts[6]);
  if (!endpoint || !id || !read_number(parts[1], place.bucket) ||
      !read_number(parts[4], place.key.position) || !read_number(parts[5], due))
    return std::nullopt;
  place.name = parts[0];
  place.endpoint = *endpoint;
  place.key.retry = parts[3] == "1";
  place.key.due_at = base::Timestamp(base::Microseconds(due));
  place.key.id = *id;
  return place;
}

struct LaneStart {
  std::string name;
  LaneRef lane;
  LaneKey after;
};

// The retries of an unordered endpoint come after all others, so a scan for retries starts there.
LaneKey beginning(const DeliveryFilter& filter, bool is_strict) {
  LaneKey key;
  key.retry = filter.status == DeliveryStatus::retrying && !is_strict;
  return key;
}

struct LaneList {
  std::vector<LaneStart> lanes;
  bool is_last = true;
};

runtime::Task<LaneList> find_lanes(pg::Link& link, const DeliveryFilter& filter,
                                   const std::optional<Place>& place) {
  LaneList list;
  if (filter.endpoint) {
    LaneStart only{"", *filter.endpoint, beginning(filter, filter.endpoint->is_strict)};
    if (place) only.after = place->key;
    list.lanes.push_back(std::move(only));
    co_return list;
  }
  if (place && !place->endpoint.is_nil())
    list.lanes.push_back({place->name, {{place->endpoint}, place->bucket, false, {}}, place->key});
  const std::string after = place ? place->name : std::string();
  const auto rows = co_await link.run(
      sql::lanes_of_tenant{.tenant = *filter.tenant, .after = after, .rows = kLanesPerStep});
  for (const auto& row : rows)
    list.lanes.push_back({std::string(row.public_id),
                          {{row.id}, row.bucket, row.is_strict, {}},
                          beginning(filter, row.is_strict)});
  list.is_last = rows.size() < static_cast<size_t>(kLanesPerStep);
  co_return list;
}

// The arrays of queued_in_order.
struct LaneColumns {
  explicit LaneColumns(const std::vector<LaneStart>& lanes) {
    for (const LaneStart& start : lanes) {
      buckets.push_back(start.lane.bucket);
      endpoints.push_back(start.lane.id.uuid);
      retries.push_back(start.after.retry);
      positions.push_back(start.after.position);
      due_times.push_back(start.after.due_at);
      ids.push_back(start.after.id);
    }
  }
  std::vector<int32_t> buckets;
  std::vector<base::Uuid> endpoints, ids;
  std::vector<bool> retries;
  std::vector<int64_t> positions;
  std::vector<base::Timestamp> due_times;
};

template <class Row>
Place place_of(const Row& row) {
  Place place;
  place.endpoint = row.endpoint_id;
  place.key = {row.retry, row.position, row.due_at, row.id};
  return place;
}

int rows_per_step(const DeliveryFilter& filter) {
  return filter.type ? kScannedMax : 2 * filter.limit + 20;
}

runtime::Task<std::optional<ScanChunk>> scan_everywhere(pg::Link& link, const DeliveryFilter& filter,
                                                        Place place) {
  const int wanted = kScannedMax;
  const auto rows = co_await link.run(sql::queued_everywhere{.bucket = place.bucket,
                                                             .endpoint = place.endpoint,
                                                             .retry = place.key.retry,
                                                             .position = place.key.position,
                                                             .due_at = place.key.due_at,
                                                             .id = place.key.id,
                                                             .rows = wanted});
  ScanChunk chunk;
  std::string last;
  for (const auto& row : rows) {
    Delivery delivery = read_queued(row);
    Place at = place_of(row);
    at.bucket = row.bucket;
    last = at.text();
    if (filter.status && delivery.status != *filter.status) continue;
    chunk.cursors.push_back(last);
    chunk.deliveries.push_back(std::move(delivery));
    if (!filter.type && chunk.deliveries.size() > static_cast<size_t>(filter.limit)) break;
  }
  if (!chunk.deliveries.empty() && chunk.deliveries.size() > static_cast<size_t>(filter.limit))
    chunk.next = chunk.cursors.back();
  else if (rows.size() == static_cast<size_t>(wanted))
    chunk.next = last;
  co_await add_histories(link, chunk.deliveries);
  co_return chunk;
}

}  // namespace

runtime::Task<std::optional<ScanChunk>> scan_by_lane(pg::Link& link, const DeliveryFilter& filter,
                                                     const std::string& after) {
  std::optional<Place> place;
  if (!after.empty()) {
    place = Place::parse(after);
    if (!place) co_return std::nullopt;
  }
  if (!filter.tenant && !filter.endpoint) {
    Place start = place.value_or(Place{});
    co_return co_await scan_everywhere(link, filter, std::move(start));
  }
  const LaneList list = co_await find_lanes(link, filter, place);
  const int wanted = rows_per_step(filter);
  const bool with_retries = filter.status != DeliveryStatus::pending;
  const LaneColumns lanes(list.lanes);
  const auto rows = co_await link.run(sql::queued_in_order{.buckets = lanes.buckets,
                                                           .endpoints = lanes.endpoints,
                                                           .retries = lanes.retries,
                                                           .positions = lanes.positions,
                                                           .due_times = lanes.due_times,
                                                           .ids = lanes.ids,
                                                           .with_retries = with_retries,
                                                           .rows = wanted});
  ScanChunk chunk;
  size_t lane = 0;
  for (const auto& row : rows) {
    Delivery delivery = read_queued(row);
    while (list.lanes[lane].lane.id != delivery.endpoint) ++lane;
    Place at = place_of(row);
    at.name = list.lanes[lane].name;
    at.bucket = list.lanes[lane].lane.bucket;
    chunk.cursors.push_back(at.text());
    chunk.deliveries.push_back(std::move(delivery));
  }
  if (rows.size() == static_cast<size_t>(wanted)) {
    chunk.next = chunk.cursors.back();
  } else if (!list.is_last) {
    Place end;
    end.name = list.lanes.back().name;
    chunk.next = end.text();
  }
  co_await add_histories(link, chunk.deliveries);
  co_return chunk;
}

}  // namespace postrider::history
