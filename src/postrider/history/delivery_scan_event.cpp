// Deliveries of one event, or of the events about one subject: event by event, newest first, replays with
// their event.
#include <algorithm>
#include <utility>

#include "postrider/history/delivery_scan_steps.hpp"

namespace postrider::history {

namespace {

constexpr int kEventsFirst = 8;  // of a subject; each further look reads twice as many
constexpr int kEventsMax = 64;

struct EventPlace {
  base::Uuid event;   // this one and older ones
  base::Uuid before;  // of this one only deliveries with smaller IDs
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

// The range of IDs that a delivery of the event can have; with an endpoint it is a single ID.
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
  const base::Uuid up_to = std::min(place.event, filter.before);
  pg::RowList<sql::EventIdRow> rows;
  if (filter.tenant)
    rows = co_await link.run(sql::events_of_subject{
        .subject = *filter.subject, .up_to = up_to, .tenant = *filter.tenant, .rows = events_max});
  else
    rows = co_await link.run(
        sql::events_of_subject_everywhere{.subject = *filter.subject, .up_to = up_to, .rows = events_max});
  for (const auto& row : rows) events.push_back(row.id);
  co_return events;
}

struct OfEvent {
  std::vector<Delivery> queued, history;
  size_t queued_rows = 0, history_rows = 0;
};

// The deliveries of both results, event by event: `number` counts the events of a statement from 1.
std::vector<OfEvent> by_event(const pg::RowsOf<sql::queued_of_events>& queued,
                              const pg::RowsOf<sql::history_of_events>& history, size_t events) {
  std::vector<OfEvent> found(events);
  for (const auto& row : queued) {
    OfEvent& of_event = found.at(static_cast<size_t>(row.number) - 1);
    of_event.queued.push_back(read_queued(row));
    ++of_event.queued_rows;
  }
  std::vector<HistoryReader> readers(events);
  for (const auto& row : history) {
    const size_t event = static_cast<size_t>(row.number) - 1;
    readers.at(event).add(row);
    ++found[event].history_rows;
  }
  for (size_t event = 0; event < events; ++event) found[event].history = readers[event].take();
  return found;
}

struct Merged {
  std::vector<Delivery> deliveries;
  std::optional<base::Uuid> covered_from;  // set when there may be more with smaller IDs
};

Merged merge(OfEvent of_event, size_t rows_max) {
  Merged merged{.deliveries = std::move(of_event.history), .covered_from = {}};
  base::Uuid floor;
  if (of_event.history_rows == rows_max) {
    if (merged.deliveries.size() > 1) merged.deliveries.pop_back();  // attempts of this page may be missing
    floor = merged.deliveries.back().id.uuid;
  }
  if (of_event.queued_rows == rows_max) floor = std::max(floor, of_event.queued.back().id.uuid);
  for (Delivery& queued : of_event.queued) {
    const auto known = std::find_if(merged.deliveries.begin(), merged.deliveries.end(),
                                    [&queued](const Delivery& each) { return each.id == queued.id; });
    if (known == merged.deliveries.end()) {
      merged.deliveries.push_back(std::move(queued));
    } else if (known->status == DeliveryStatus::retrying) {
      add_history(queued, *known);
      *known = std::move(queued);
    }
  }
  if (!floor.is_nil()) merged.covered_from = floor;
  std::erase_if(merged.deliveries, [&floor](const Delivery& each) { return each.id.uuid < floor; });
  std::sort(merged.deliveries.begin(), merged.deliveries.end(),
            [](const Delivery& a, const Delivery& b) { return a.id > b.id; });
  return merged;
}

// The arrays of queued_of_events and history_of_events.
struct EventColumns {
  EventColumns(const std::vector<base::Uuid>& events, const DeliveryFilter& filter, const EventPlace& place) {
    for (const base::Uuid& event : events) {
      const auto range = ids_of({event}, filter);
      before.push_back(event == place.event || filter.event ? place.before : last_id());
      first.push_back(range.first.uuid);
      last.push_back(range.last.uuid);
    }
  }
  std::vector<base::Uuid> before, first, last;
};

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
  const EventColumns columns(events, filter, place);
  const auto [queued, history] = co_await link.run(sql::queued_of_events{.events = events,
                                                                         .before = columns.before,
                                                                         .first = columns.first,
                                                                         .last = columns.last,
                                                                         .rows = rows_max},
                                                   sql::history_of_events{.events = events,
                                                                          .before = columns.before,
                                                                          .first = columns.first,
                                                                          .last = columns.last,
                                                                          .rows = rows_max});
  std::vector<OfEvent> of_events = by_event(queued, history, events.size());
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
