// Deliveries of one event, or of the events about one subject: event by event, the newest first, replays
// beside what they replay.
#include <algorithm>
#include <utility>

#include "postrider/api/deliveries.sql.hpp"
#include "postrider/api/delivery_scan_steps.hpp"

namespace postrider::api {

namespace {

constexpr int kEventsPerStep = 20;

struct EventPlace {
  base::Uuid event;   // this one and older ones
  base::Uuid before;  // of this one only deliveries below
};

base::Uuid last_id() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

std::optional<EventPlace> parse_place(const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  const auto event = base::Uuid::from_hex(std::string_view(text).substr(0, comma));
  const auto before = base::Uuid::from_hex(std::string_view(text).substr(comma + 1));
  if (!event || !before) return std::nullopt;
  return EventPlace{*event, *before};
}

std::string place_text(const base::Uuid& event, const base::Uuid& before) {
  return event.hex() + "," + before.hex();
}

// All ids that a delivery of the event can have; with an endpoint there is only one.
model::DeliveryRange ids_of(model::EventId event, const DeliveryFilter& filter) {
  if (!filter.endpoint) return model::delivery_range(event, event);
  const auto only = base::Uuid::from_hex(model::delivery_head_of(event) + filter.endpoint->tail);
  return {{only.value_or(event.uuid)}, {only.value_or(event.uuid)}};
}

runtime::Task<std::vector<base::Uuid>> find_events(pg::Link& link, const DeliveryFilter& filter,
                                                   const EventPlace& place) {
  std::vector<base::Uuid> events;
  if (filter.event) {
    events.push_back(filter.event->uuid);
    co_return events;
  }
  const base::Uuid upto = std::min(place.event, filter.before);
  pg::Params params(*filter.subject, filter.tenant, upto, base::Uuid{}, kEventsPerStep);
  pg::Batch batch;
  batch.add(filter.tenant ? sql::events_of_subject : sql::events_of_subject_everywhere, std::move(params));
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  for (size_t row = 0; row < found[0].size(); ++row) events.push_back(found[0].get<base::Uuid>(row, 0));
  co_return events;
}

struct OfEvent {
  std::vector<Delivery> deliveries;
  std::optional<base::Uuid> covered_from;  // set when there may be more below
};

OfEvent read_event(const pg::Rows& live_rows, const pg::Rows& history_rows, size_t rows_max) {
  OfEvent found;
  found.deliveries = read_history(history_rows);
  base::Uuid floor;
  if (history_rows.size() == rows_max) {
    if (found.deliveries.size() > 1) found.deliveries.pop_back();  // attempts of it may be missing
    floor = found.deliveries.back().id.uuid;
  }
  for (size_t row = 0; row < live_rows.size(); ++row) {
    Delivery live = read_live(live_rows, row);
    const auto known = std::find_if(found.deliveries.begin(), found.deliveries.end(),
                                    [&live](const Delivery& each) { return each.id == live.id; });
    if (known == found.deliveries.end()) {
      found.deliveries.push_back(std::move(live));
    } else if (known->status == DeliveryStatus::retrying) {
      add_history(live, *known);
      *known = std::move(live);
    }
  }
  if (live_rows.size() == rows_max)
    floor = std::max(floor, live_rows.get<base::Uuid>(live_rows.size() - 1, 0));
  if (!floor.is_nil()) found.covered_from = floor;
  std::erase_if(found.deliveries, [&floor](const Delivery& each) { return each.id.uuid < floor; });
  std::sort(found.deliveries.begin(), found.deliveries.end(),
            [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  return found;
}

base::Uuid just_before(base::Uuid id) {
  for (size_t i = id.bytes.size(); i-- > 0;)
    if (id.bytes[i]-- != 0) break;
  return id;
}

}  // namespace

runtime::Task<std::optional<ScanChunk>> scan_by_event(pg::Link& link, const DeliveryFilter& filter,
                                                      const std::string& after) {
  EventPlace place{last_id(), last_id()};
  if (!after.empty()) {
    const auto parsed = parse_place(after);
    if (!parsed) co_return std::nullopt;
    place = *parsed;
  }
  const std::vector<base::Uuid> events = co_await find_events(link, filter, place);
  const int rows_max = 2 * filter.limit + 20;
  pg::Batch batch;
  for (const base::Uuid& event : events) {
    const auto range = ids_of({event}, filter);
    const base::Uuid before = event == place.event || filter.event ? place.before : last_id();
    batch.with(sql::live_of_event, event, before, range.first.uuid, range.last.uuid, rows_max)
        .with(sql::history_of_event, event, before, range.first.uuid, range.last.uuid, rows_max);
  }
  ScanChunk chunk;
  if (batch.empty()) co_return chunk;
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  for (size_t i = 0; i < events.size(); ++i) {
    OfEvent of_event = read_event(found[2 * i], found[2 * i + 1], static_cast<size_t>(rows_max));
    for (Delivery& delivery : of_event.deliveries) {
      chunk.cursors.push_back(place_text(events[i], delivery.id.uuid));
      chunk.deliveries.push_back(std::move(delivery));
    }
    if (!of_event.covered_from) continue;
    chunk.next = place_text(events[i], *of_event.covered_from);
    co_return chunk;
  }
  if (!filter.event && events.size() == static_cast<size_t>(kEventsPerStep))
    chunk.next = place_text(just_before(events.back()), last_id());
  co_return chunk;
}

}  // namespace postrider::api
