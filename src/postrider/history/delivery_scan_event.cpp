// Deliveries of one event, or of the events about one subject: event by event, the newest first, replays
// beside what they replay.
#include <algorithm>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery_scan_steps.hpp"

namespace postrider::history {

namespace {

constexpr int kEventsFirst = 8;  // of a subject, and twice as many with each further look
constexpr int kEventsMax = 64;

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
                                                   const EventPlace& place, int events_max) {
  std::vector<base::Uuid> events;
  if (filter.event) {
    events.push_back(filter.event->uuid);
    co_return events;
  }
  const base::Uuid upto = std::min(place.event, filter.before);
  pg::Params params(*filter.subject, filter.tenant, upto, base::Uuid{}, events_max);
  pg::Batch batch;
  batch.add(filter.tenant ? sql::events_of_subject : sql::events_of_subject_everywhere, std::move(params));
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  for (size_t row = 0; row < found[0].size(); ++row) events.push_back(found[0].get<base::Uuid>(row, 0));
  co_return events;
}

struct OfEvent {
  std::vector<Delivery> live, history;
  size_t live_rows = 0, history_rows = 0;
};

// The rows of both answers, event by event.
std::vector<OfEvent> by_event(const pg::Rows& live_rows, const pg::Rows& history_rows, size_t events) {
  std::vector<OfEvent> found(events);
  for (size_t row = 0; row < live_rows.size(); ++row) {
    OfEvent& of_event = found.at(static_cast<size_t>(live_rows.get<int32_t>(row, 8)) - 1);
    of_event.live.push_back(read_live(live_rows, row));
    ++of_event.live_rows;
  }
  for (size_t row = 0; row < history_rows.size(); ++row)
    ++found.at(static_cast<size_t>(history_rows.get<int32_t>(row, 14)) - 1).history_rows;
  // Each delivery belongs to one event, and they come in the order of the events.
  std::vector<Delivery> history = read_history(history_rows);
  size_t next = 0, rows_before = 0;
  for (OfEvent& of_event : found) {
    rows_before += of_event.history_rows;
    if (of_event.history_rows == 0) continue;
    // Versions of an event have rows of their own; their ids begin alike.
    const std::string head = model::delivery_head_of({history_rows.get<base::Uuid>(rows_before - 1, 4)});
    for (; next < history.size() && model::delivery_head_of(history[next].event) == head; ++next)
      of_event.history.push_back(std::move(history[next]));
  }
  return found;
}

struct Merged {
  std::vector<Delivery> deliveries;
  std::optional<base::Uuid> covered_from;  // set when there may be more below
};

Merged merge(OfEvent of_event, size_t rows_max) {
  Merged merged{.deliveries = std::move(of_event.history), .covered_from = {}};
  base::Uuid floor;
  if (of_event.history_rows == rows_max) {
    if (merged.deliveries.size() > 1) merged.deliveries.pop_back();  // attempts of it may be missing
    floor = merged.deliveries.back().id.uuid;
  }
  if (of_event.live_rows == rows_max) floor = std::max(floor, of_event.live.back().id.uuid);
  for (Delivery& live : of_event.live) {
    const auto known = std::find_if(merged.deliveries.begin(), merged.deliveries.end(),
                                    [&live](const Delivery& each) { return each.id == live.id; });
    if (known == merged.deliveries.end()) {
      merged.deliveries.push_back(std::move(live));
    } else if (known->status == DeliveryStatus::retrying) {
      add_history(live, *known);
      *known = std::move(live);
    }
  }
  if (!floor.is_nil()) merged.covered_from = floor;
  std::erase_if(merged.deliveries, [&floor](const Delivery& each) { return each.id.uuid < floor; });
  std::sort(merged.deliveries.begin(), merged.deliveries.end(),
            [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  return merged;
}

// Parameters of live_of_events and history_of_events.
pg::Params event_columns(const std::vector<base::Uuid>& events, const DeliveryFilter& filter,
                         const EventPlace& place, int rows_max) {
  std::vector<base::Uuid> below, first, last;
  for (const base::Uuid& event : events) {
    const auto range = ids_of({event}, filter);
    below.push_back(event == place.event || filter.event ? place.before : last_id());
    first.push_back(range.first.uuid);
    last.push_back(range.last.uuid);
  }
  return pg::Params(events, below, first, last, rows_max);
}

base::Uuid just_before(base::Uuid id) {
  for (size_t i = id.bytes.size(); i-- > 0;)
    if (id.bytes[i]-- != 0) break;
  return id;
}

}  // namespace

runtime::Task<std::optional<ScanChunk>> scan_by_event(pg::Link& link, const DeliveryFilter& filter,
                                                      const ScanFrom& from) {
  const std::string& after = from.after;
  const int events_max = std::min(kEventsMax, kEventsFirst << std::min(from.look, 8));
  EventPlace place{last_id(), last_id()};
  if (!after.empty()) {
    const auto parsed = parse_place(after);
    if (!parsed) co_return std::nullopt;
    place = *parsed;
  }
  const std::vector<base::Uuid> events = co_await find_events(link, filter, place, events_max);
  ScanChunk chunk;
  if (events.empty()) co_return chunk;
  const int rows_max = 2 * filter.limit + 20;
  pg::Batch batch;
  batch.add(sql::live_of_events, event_columns(events, filter, place, rows_max))
      .add(sql::history_of_events, event_columns(events, filter, place, rows_max));
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  std::vector<OfEvent> of_events = by_event(found[0], found[1], events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    Merged of_event = merge(std::move(of_events[i]), static_cast<size_t>(rows_max));
    for (Delivery& delivery : of_event.deliveries) {
      chunk.cursors.push_back(place_text(events[i], delivery.id.uuid));
      chunk.deliveries.push_back(std::move(delivery));
    }
    if (!of_event.covered_from) continue;
    chunk.next = place_text(events[i], *of_event.covered_from);
    co_return chunk;
  }
  if (!filter.event && events.size() == static_cast<size_t>(events_max))
    chunk.next = place_text(just_before(events.back()), last_id());
  co_return chunk;
}

}  // namespace postrider::history
