#include "postrider/history/attempt_scan.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/newest_days.hpp"
#include "postrider/model/event_pattern.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::history {

namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 12ms;  // a page that found little goes on looking for so long
constexpr int kFirstLook = 300;   // rows, and four times as many with each further look
// More than two deliveries can have attempts, so that the largest look always sees a whole one.
constexpr int kLookMax = 4'000;
constexpr auto kSkew = 1s;  // between the clocks of who made a delivery and who sent it

// The last attempt that was looked at.
struct Place {
  base::Uuid delivery;
  int rank = 0;

  std::string text() const { return delivery.hex() + "," + std::to_string(rank); }
  static std::optional<Place> parse(std::string_view text);
};

std::optional<Place> Place::parse(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto delivery = base::Uuid::from_hex(text.substr(0, comma));
  Place place;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data() + comma + 1, end, place.rank);
  if (!delivery || error != std::errc() || read_to != end) return std::nullopt;
  place.delivery = *delivery;
  return place;
}

base::Uuid last_id() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

base::Uuid just_behind(base::Uuid id) {
  for (size_t i = id.bytes.size(); i-- > 0;)
    if (++id.bytes[i] != 0) return id;
  return last_id();
}

// Columns of history_of_….
struct Seen {
  AttemptKey key;
  model::EventId event;
  bool is_wanted = false;
};

bool is_wanted(const AttemptFilter& filter, const pg::Rows& rows, size_t row) {
  const DeliveryFilter& which = filter.which;
  const auto started_at = rows.get<base::Timestamp>(row, 9);
  if (filter.outcome && rows.get<std::string_view>(row, 2) != *filter.outcome) return false;
  if (filter.status_code && rows.get<std::optional<int32_t>>(row, 6) != filter.status_code) return false;
  if (filter.error && rows.get<std::optional<std::string>>(row, 7) != filter.error) return false;
  if (filter.since && started_at < *filter.since) return false;
  if (filter.until && started_at >= *filter.until) return false;
  if (which.endpoint && rows.get<base::Uuid>(row, 3) != which.endpoint->id.uuid) return false;
  return !which.tenant || rows.get<std::string_view>(row, 5) == *which.tenant;
}

pg::Batch statement(const AttemptFilter& filter, const base::Uuid& before, const base::Uuid& from, int rows) {
  const DeliveryFilter& which = filter.which;
  pg::Batch batch;
  if (which.event) {
    const auto range = model::delivery_range(*which.event, *which.event);
    batch.with(sql::history_of_events, std::vector{which.event->uuid}, std::vector{before},
               std::vector{range.first.uuid}, std::vector{range.last.uuid}, rows);
  } else if (which.endpoint) {
    batch.with(sql::history_of_endpoint, before, from, rows, which.endpoint->id.uuid);
  } else if (which.tenant && filter.outcome && *filter.outcome != "delivered") {
    batch.with(sql::failed_of_tenant, before, from, rows, *which.tenant, *filter.outcome);
  } else if (which.tenant) {
    batch.with(sql::history_of_tenant, before, from, rows, *which.tenant);
  } else {
    batch.with(sql::history_of_all, before, from, rows);
  }
  return batch;
}

struct Look {
  std::vector<Seen> seen;  // in the order of the list, behind the place
  bool is_last = false;
};

runtime::Task<Look> look(pg::Link& link, const AttemptFilter& filter, const Place& place, int rows_max) {
  const base::Uuid before = just_behind(place.delivery);
  std::vector<base::Uuid> bounds = lower_bounds(before, {}, base::wall_now());
  if (filter.which.event) bounds.erase(bounds.begin(), bounds.end() - 1);  // it has bounds of its own
  std::vector<pg::Rows> found;
  for (const base::Uuid& from : bounds) {
    pg::Batch batch = statement(filter, before, from, rows_max);
    found = co_await link.run(std::move(batch));
    if (found[0].size() == static_cast<size_t>(rows_max)) break;
  }
  const pg::Rows& rows = found[0];
  Look look;
  look.is_last = rows.size() < static_cast<size_t>(rows_max);
  for (size_t row = 0; row < rows.size(); ++row) {
    const Seen seen{{rows.get<base::Uuid>(row, 0), rows.get<int32_t>(row, 1)},
                    {rows.get<base::Uuid>(row, 4)},
                    is_wanted(filter, rows, row)};
    if (seen.key.delivery == place.delivery && seen.key.rank() >= place.rank) continue;
    look.seen.push_back(seen);
  }
  // Of the last one attempts may be missing: the next look begins with it.
  if (!look.is_last && !look.seen.empty()) {
    const base::Uuid partial = look.seen.back().key.delivery;
    std::erase_if(look.seen, [&partial](const Seen& each) { return each.key.delivery == partial; });
  }
  std::sort(look.seen.begin(), look.seen.end(), [](const Seen& a, const Seen& b) {
    return std::pair(a.key.delivery, a.key.rank()) > std::pair(b.key.delivery, b.key.rank());
  });
  co_return look;
}

// Only those whose event has a type that matches the pattern.
runtime::Task<void> filter_by_type(pg::Link& link, const std::string& type, std::vector<Seen>& seen) {
  std::vector<base::Uuid> events;
  for (const Seen& each : seen)
    if (each.is_wanted) events.push_back(each.event.uuid);
  if (events.empty()) co_return;
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  pg::Params params(events, events.front(), events.back());
  const pg::Rows rows = co_await link.run_one(sql::events_of_ids, std::move(params));
  std::vector<base::Uuid> fitting;
  for (size_t row = 0; row < rows.size(); ++row)
    if (model::matches(type, rows.get<std::string_view>(row, 2)))
      fitting.push_back(rows.get<base::Uuid>(row, 0));
  std::sort(fitting.begin(), fitting.end());
  for (Seen& each : seen)
    each.is_wanted &= std::binary_search(fitting.begin(), fitting.end(), each.event.uuid);
}

// Takes what fits into the page; true when it is full or nothing is left.
bool take(AttemptPage& page, const AttemptFilter& filter, const Look& look, Place& place) {
  for (size_t i = 0; i < look.seen.size(); ++i) {
    const AttemptKey& key = look.seen[i].key;
    place = {key.delivery, key.rank()};
    if (!look.seen[i].is_wanted) continue;
    page.attempts.push_back(key);
    if (page.attempts.size() < static_cast<size_t>(filter.which.limit)) continue;
    const bool is_all = look.is_last && i + 1 == look.seen.size();
    if (!is_all) page.next = place.text();
    return true;
  }
  return look.is_last;
}

}  // namespace

runtime::Task<base::Result<AttemptPage, BadCursor>> scan_attempts(pg::Link& link, AttemptFilter filter) {
  Place place{filter.until ? model::id_floor(*filter.until + kSkew) : last_id(), 0};
  if (!filter.which.after.empty()) {
    const auto parsed = Place::parse(filter.which.after);
    if (!parsed) co_return base::Failure{BadCursor{}};
    place = *parsed;
  }
  AttemptPage page;
  const auto give_up_at = base::BootClock::now() + kPatience;
  for (int rows = kFirstLook;; rows = std::min(kLookMax, 4 * rows)) {
    Look found = co_await look(link, filter, place, rows);
    if (found.seen.empty() && !found.is_last && rows < kLookMax)
      continue;  // it was but a part of one delivery
    if (filter.which.type) co_await filter_by_type(link, *filter.which.type, found.seen);
    if (take(page, filter, found, place)) co_return page;
    if (base::BootClock::now() < give_up_at) continue;
    page.next = place.text();
    co_return page;
  }
}

}  // namespace postrider::history
