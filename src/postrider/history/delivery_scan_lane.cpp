// What is in the queue, lane by lane, in the order in which it will be sent.
#include <charconv>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
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

// Where a walk stands: at a row of a lane. `name` is the endpoint's public ID, which lanes of a tenant are
// ordered by; over all tenants they are ordered by bucket and endpoint.
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
  LaneKey behind;
};

// Of an unordered endpoint the retries are apart: the walk for them begins there.
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
    if (place) only.behind = place->key;
    list.lanes.push_back(std::move(only));
    co_return list;
  }
  if (place && !place->endpoint.is_nil())
    list.lanes.push_back({place->name, {{place->endpoint}, place->bucket, false, {}}, place->key});
  pg::Params params(*filter.tenant, place ? place->name : std::string(), kLanesPerStep);
  const pg::Rows rows = co_await link.run_one(sql::lanes_of_tenant, std::move(params));
  for (size_t row = 0; row < rows.size(); ++row)
    list.lanes.push_back(
        {rows.get<std::string>(row, 0),
         {{rows.get<base::Uuid>(row, 1)}, rows.get<int32_t>(row, 2), rows.get<bool>(row, 3), {}},
         beginning(filter, rows.get<bool>(row, 3))});
  list.is_last = rows.size() < static_cast<size_t>(kLanesPerStep);
  co_return list;
}

pg::Params lane_columns(const std::vector<LaneStart>& lanes) {
  std::vector<int32_t> buckets;
  std::vector<base::Uuid> endpoints, ids;
  std::vector<bool> retries;
  std::vector<int64_t> positions;
  std::vector<base::Timestamp> dues;
  for (const LaneStart& start : lanes) {
    buckets.push_back(start.lane.bucket);
    endpoints.push_back(start.lane.id.uuid);
    retries.push_back(start.behind.retry);
    positions.push_back(start.behind.position);
    dues.push_back(start.behind.due_at);
    ids.push_back(start.behind.id);
  }
  pg::Params params;
  params.add(buckets).add(endpoints).add(retries).add(positions).add(dues).add(ids);
  return params;
}

Place place_of(const pg::Rows& rows, size_t row, const Delivery& delivery) {
  Place place;
  place.endpoint = delivery.endpoint.uuid;
  place.key = {rows.get<bool>(row, 8), rows.get<int64_t>(row, 9), *delivery.next_attempt_at,
               delivery.id.uuid};
  return place;
}

int rows_per_step(const DeliveryFilter& filter) {
  return filter.type ? kScannedMax : 2 * filter.limit + 20;
}

runtime::Task<std::optional<ScanChunk>> scan_everywhere(pg::Link& link, const DeliveryFilter& filter,
                                                        Place place) {
  const int wanted = kScannedMax;
  pg::Params params(place.bucket, place.endpoint, place.key.retry, place.key.position, place.key.due_at,
                    place.key.id, wanted);
  const pg::Rows rows = co_await link.run_one(sql::live_everywhere, std::move(params));
  ScanChunk chunk;
  std::string last;
  for (size_t row = 0; row < rows.size(); ++row) {
    Delivery delivery = read_live(rows, row);
    Place at = place_of(rows, row, delivery);
    at.bucket = rows.get<int32_t>(row, 10);
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
  pg::Params params = lane_columns(list.lanes);
  params.add(wanted).add(filter.status != DeliveryStatus::pending);
  const pg::Rows rows = co_await link.run_one(sql::live_in_order, std::move(params));
  ScanChunk chunk;
  size_t lane = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    Delivery delivery = read_live(rows, row);
    while (list.lanes[lane].lane.id != delivery.endpoint) ++lane;
    Place at = place_of(rows, row, delivery);
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
