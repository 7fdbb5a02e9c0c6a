#include "postrider/history/attempt_scan.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "postrider/history/newest_days.hpp"
#include "postrider/model/event_pattern.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::history {

namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 12ms;  // a page that found little continues this long
constexpr int kFirstLook = 300;   // rows; each further look reads four times as many
// More rows than the attempts of two deliveries, so that the largest look always reads all of one delivery.
constexpr int kLookMax = 20'000;
constexpr auto kSkew = 1s;  // between the clocks of the nodes that created and sent a delivery

// The last attempt that was read.
struct Place {
  base::Uuid delivery;
  AttemptKey::Rank rank;

  std::string text() const {
    return delivery.hex() + "," + std::to_string(rank.attempt) + "," + std::to_string(rank.probe);
  }
  static std::optional<Place> parse(std::string_view text);
};

std::optional<Place> Place::parse(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto delivery = base::Uuid::from_hex(text.substr(0, comma));
  Place place;
  const char* const end = text.data() + text.size();
  const auto [attempt_end, error] = std::from_chars(text.data() + comma + 1, end, place.rank.attempt);
  if (!delivery || error != std::errc() || attempt_end == end || *attempt_end != ',') return std::nullopt;
  const auto [read_to, probe_error] = std::from_chars(attempt_end + 1, end, place.rank.probe);
  if (probe_error != std::errc() || read_to != end) return std::nullopt;
  place.delivery = *delivery;
  return place;
}

base::Uuid last_id() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

base::Uuid just_after(base::Uuid id) {
  for (size_t i = id.bytes.size(); i-- > 0;)
    if (++id.bytes[i] != 0) return id;
  return last_id();
}

struct Seen {
  AttemptKey key;
  model::EventId event;
  bool is_wanted = false;
};

// The filters that the statement did not apply.
template <class Row>
bool is_wanted(const AttemptFilter& filter, const Row& row) {
  const DeliveryFilter& which = filter.which;
  if (filter.outcome && row.outcome != *filter.outcome) return false;
  if (filter.status_code && row.status_code != filter.status_code) return false;
  if (filter.error && row.error != filter.error) return false;
  if (filter.since && row.started_at < *filter.since) return false;
  if (filter.until && row.started_at >= *filter.until) return false;
  if (which.endpoint && row.endpoint_id != which.endpoint->id.uuid) return false;
  return !which.tenant || row.tenant_id == *which.tenant;
}

template <class Rows>
std::vector<Seen> read_seen(const AttemptFilter& filter, const Rows& rows) {
  std::vector<Seen> seen;
  seen.reserve(rows.size());
  for (const auto& row : rows)
    seen.push_back({{row.delivery_id, row.attempt, row.probed_attempt.value_or(0)},
                    {row.event_id},
                    is_wanted(filter, row)});
  return seen;
}

struct Range {
  base::Uuid before, from;
  int rows_max = 0;
};

runtime::Task<std::vector<Seen>> read_event(pg::Link& link, const AttemptFilter& filter, const Range& range) {
  const model::EventId event = *filter.which.event;
  const auto ids = model::delivery_range(event, event);
  const std::vector<base::Uuid> events{event.uuid}, before{range.before}, first{ids.first.uuid},
      last{ids.last.uuid};
  const auto rows = co_await link.run(sql::history_of_events{
      .events = events, .before = before, .first = first, .last = last, .rows = range.rows_max});
  co_return read_seen(filter, rows);
}

// Newest first, through the best index for the filter.
runtime::Task<std::vector<Seen>> read_range(pg::Link& link, const AttemptFilter& filter, const Range& range) {
  const DeliveryFilter& which = filter.which;
  const auto& [before, from, rows_max] = range;
  pg::RowList<sql::HistoryRow> rows;
  if (which.endpoint)
    rows = co_await link.run(sql::history_of_endpoint{
        .before = before, .from = from, .endpoint = which.endpoint->id.uuid, .rows = rows_max});
  else if (which.tenant && filter.outcome && *filter.outcome != "delivered")
    rows = co_await link.run(sql::failed_of_tenant{.before = before,
                                                   .from = from,
                                                   .tenant = *which.tenant,
                                                   .outcome = *filter.outcome,
                                                   .rows = rows_max});
  else if (which.tenant)
    rows = co_await link.run(
        sql::history_of_tenant{.before = before, .from = from, .tenant = *which.tenant, .rows = rows_max});
  else
    rows = co_await link.run(sql::history_of_all{.before = before, .from = from, .rows = rows_max});
  co_return read_seen(filter, rows);
}

struct Look {
  std::vector<Seen> seen;  // in the order of the list, after the place
  bool is_last = false;
};

runtime::Task<Look> look(pg::Link& link, const AttemptFilter& filter, const Place& place, int rows_max) {
  const base::Uuid before = just_after(place.delivery);
  std::vector<Seen> found;
  if (filter.which.event) {
    const Range range{before, {}, rows_max};
    found = co_await read_event(link, filter, range);
  } else {
    const std::vector<base::Uuid> bounds = lower_bounds(before, {}, base::wall_now());
    for (const base::Uuid& from : bounds) {
      const Range range{before, from, rows_max};
      found = co_await read_range(link, filter, range);
      if (found.size() == static_cast<size_t>(rows_max)) break;
    }
  }
  Look look;
  look.is_last = found.size() < static_cast<size_t>(rows_max);
  for (const Seen& seen : found) {
    if (seen.key.delivery == place.delivery && seen.key.rank() >= place.rank) continue;
    look.seen.push_back(seen);
  }
  // Attempts of the last delivery may be missing: the next look starts with it.
  if (!look.is_last && !look.seen.empty()) {
    const base::Uuid partial = look.seen.back().key.delivery;
    std::erase_if(look.seen, [&partial](const Seen& each) { return each.key.delivery == partial; });
  }
  std::sort(look.seen.begin(), look.seen.end(), [](const Seen& a, const Seen& b) {
    return std::pair(a.key.delivery, a.key.rank()) > std::pair(b.key.delivery, b.key.rank());
  });
  co_return look;
}

// Keeps only attempts of events whose type matches the pattern.
runtime::Task<void> filter_by_type(pg::Link& link, const std::string& type, std::vector<Seen>& seen) {
  std::vector<base::Uuid> events;
  for (const Seen& each : seen)
    if (each.is_wanted) events.push_back(each.event.uuid);
  if (events.empty()) co_return;
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  const auto rows = co_await link.run(
      sql::events_of_ids{.events = events, .smallest = events.front(), .largest = events.back()});
  std::vector<base::Uuid> fitting;
  for (const auto& row : rows)
    if (model::matches(type, row.type)) fitting.push_back(row.id);
  std::sort(fitting.begin(), fitting.end());
  for (Seen& each : seen)
    each.is_wanted &= std::binary_search(fitting.begin(), fitting.end(), each.event.uuid);
}

// Adds to the page; true when it is full or nothing is left.
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
  Place place{filter.until ? model::id_floor(*filter.until + kSkew) : last_id(), {}};
  if (!filter.which.after.empty()) {
    const auto parsed = Place::parse(filter.which.after);
    if (!parsed) co_return base::Failure{BadCursor{}};
    place = *parsed;
  }
  AttemptPage page;
  const auto give_up_at = base::BootClock::now() + kPatience;
  for (int rows = kFirstLook;; rows = std::min(kLookMax, 4 * rows)) {
    Look found = co_await look(link, filter, place, rows);
    if (found.seen.empty() && !found.is_last && rows < kLookMax) continue;  // read only part of one delivery
    if (filter.which.type) co_await filter_by_type(link, *filter.which.type, found.seen);
    if (take(page, filter, found, place)) co_return page;
    if (base::BootClock::now() < give_up_at) continue;
    page.next = place.text();
    co_return page;
  }
}

}  // namespace postrider::history
