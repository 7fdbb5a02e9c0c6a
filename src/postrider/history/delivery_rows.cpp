#include "postrider/history/delivery_rows.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>
#include <utility>

#include "postrider/registry/audience.hpp"

namespace postrider::history {

namespace {

constexpr std::array<std::pair<DeliveryStatus, std::string_view>, 6> kStatuses{{
    {DeliveryStatus::pending, "pending"},
    {DeliveryStatus::processing, "processing"},
    {DeliveryStatus::retrying, "retrying"},
    {DeliveryStatus::delivered, "delivered"},
    {DeliveryStatus::dead_letter, "dead_letter"},
    {DeliveryStatus::canceled, "canceled"},
}};

bool is_queued(DeliveryStatus status) {
  return status == DeliveryStatus::pending || status == DeliveryStatus::retrying ||
         status == DeliveryStatus::processing;
}

template <class Id>
std::vector<base::Uuid> sorted_ids(const std::vector<Delivery>& deliveries, Id Delivery::* member) {
  std::vector<base::Uuid> ids;
  ids.reserve(deliveries.size());
  for (const Delivery& delivery : deliveries) ids.push_back((delivery.*member).uuid);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

std::string_view label(DeliveryStatus status) {
  for (const auto& [known, word] : kStatuses)
    if (known == status) return word;
  return "pending";
}

std::optional<DeliveryStatus> parse_delivery_status(std::string_view text) {
  for (const auto& [status, word] : kStatuses)
    if (word == text) return status;
  return std::nullopt;
}

void HistoryReader::add_attempt(Delivery attempt) {
  for (const std::optional<Delivery>& read : {std::cref(note_), std::cref(last_), std::cref(probe_)})
    if (read && read->id != attempt.id) {
      finish_delivery();
      break;
    }
  if (attempt.attempts < 0) {
    if (!probe_ || attempt.attempts < probe_->attempts) probe_ = std::move(attempt);
  } else if (attempt.attempts == 0)
    note_ = std::move(attempt);
  else if (!last_ || last_->attempts < attempt.attempts)
    last_ = std::move(attempt);
}

// Attempt 0 has the final status. The number is that of the last attempt, and the result of the last request
// that of the last attempt or failed probe.
void HistoryReader::finish_delivery() {
  std::optional<Delivery> note = std::exchange(note_, std::nullopt);
  std::optional<Delivery> last = std::exchange(last_, std::nullopt);
  std::optional<Delivery> probe = std::exchange(probe_, std::nullopt);
  if (probe && (!last || probe->last_attempt_at > last->last_attempt_at)) {
    probe->attempts = last ? last->attempts : 0;
    last = std::move(probe);
  }
  if (!note) {
    if (last) deliveries_.push_back(std::move(*last));
    return;
  }
  note->next_attempt_at.reset();
  note->last_attempt_at.reset();
  if (last) {
    note->attempts = last->attempts;
    note->last_attempt_at = last->last_attempt_at;
    note->last_status_code = last->last_status_code;
    if (!note->last_error) note->last_error = std::move(last->last_error);
  }
  deliveries_.push_back(std::move(*note));
}

std::vector<Delivery> HistoryReader::take() {
  finish_delivery();
  return std::exchange(deliveries_, {});
}

std::vector<Delivery> read_history(const pg::RowList<sql::HistoryRow>& rows) {
  HistoryReader reader;
  for (const auto& row : rows) reader.add(row);
  return reader.take();
}

void add_history(Delivery& queued, const Delivery& history) {
  queued.last_attempt_at = history.last_attempt_at;
  queued.last_status_code = history.last_status_code;
  queued.last_error = history.last_error;
  queued.last_error_detail = history.last_error_detail;
}

runtime::Task<DeliveryNames> find_names(pg::Link& link, const std::vector<Delivery>& deliveries) {
  DeliveryNames names;
  if (deliveries.empty()) co_return names;
  const auto events = sorted_ids(deliveries, &Delivery::event);
  const auto endpoints = sorted_ids(deliveries, &Delivery::endpoint);
  const auto [event_rows, endpoint_rows] = co_await link.run(
      sql::events_of_ids{.events = events, .smallest = events.front(), .largest = events.back()},
      sql::endpoints_of_ids{.endpoints = endpoints});
  for (const auto& row : event_rows) {
    const model::EventId id{row.id};
    DeliveryNames::Event& event = names.events[id];
    event.public_id = row.public_id ? std::string(*row.public_id) : id.public_id();
    event.type = row.type;
    event.version = row.version;
    event.subject = row.subject;
  }
  for (const auto& row : endpoint_rows)
    names.endpoints[{row.id}] = {std::string(row.public_id), std::string(row.url), row.max_attempts};
  co_return names;
}

runtime::Task<void> mark_processing(pg::Link& link, std::vector<Delivery>& deliveries) {
  std::vector<base::Uuid> waiting;
  for (const Delivery& delivery : deliveries)
    if (delivery.status == DeliveryStatus::pending || delivery.status == DeliveryStatus::retrying)
      waiting.push_back(delivery.id.uuid);
  if (waiting.empty()) co_return;
  const auto rows = co_await link.run(sql::in_flight_of{.deliveries = waiting});
  std::unordered_set<model::DeliveryId> in_flight;
  for (const auto& row : rows) in_flight.insert({row.id});
  for (Delivery& delivery : deliveries) {
    const bool is_waiting =
        delivery.status == DeliveryStatus::pending || delivery.status == DeliveryStatus::retrying;
    if (is_waiting && in_flight.contains(delivery.id)) delivery.status = DeliveryStatus::processing;
  }
}

runtime::Task<void> add_waits(pg::Link& link, std::vector<Delivery>& deliveries) {
  std::unordered_map<model::DeliveryId, Delivery*> queued;
  std::vector<base::Uuid> ids, endpoints;
  for (Delivery& delivery : deliveries) {
    if (!is_queued(delivery.status)) continue;
    queued[delivery.id] = &delivery;
    ids.push_back(delivery.id.uuid);
    endpoints.push_back(delivery.endpoint.uuid);
  }
  if (queued.empty()) co_return;
  const auto rows = co_await link.run(sql::waits_of{.deliveries = ids, .endpoints = endpoints});
  for (const auto& row : rows) {
    Delivery& delivery = *queued.at({row.id});
    if (delivery.status != DeliveryStatus::processing) delivery.waiting_for = row.waiting_for;
    delivery.give_up_at = row.give_up_at;
    delivery.next_probe_at = row.next_probe_at;
  }
}

base::JsonObject delivery_json(const Delivery& delivery, const DeliveryNames& names,
                               const registry::Principal& reader) {
  const auto event = names.events.find(delivery.event);
  const auto endpoint = names.endpoints.find(delivery.endpoint);
  const bool has_event = event != names.events.end(), has_endpoint = endpoint != names.endpoints.end();
  base::JsonObject json;
  json.add("id", delivery.id.public_id())
      .add("tenant_id", delivery.tenant)
      .add("endpoint_id", has_endpoint ? endpoint->second.public_id : delivery.endpoint.public_id())
      .add("event_id", has_event ? event->second.public_id : delivery.event.public_id());
  if (has_event)
    json.add("event_type", event->second.type).add("subject", event->second.subject);
  else
    json.raw("event_type", "null").raw("subject", "null");
  if (has_endpoint)
    json.add("url", endpoint->second.url);
  else
    json.raw("url", "null");
  json.add("status", label(delivery.status)).add("attempts", delivery.attempts);
  if (has_endpoint) json.add("max_attempts", endpoint->second.max_attempts);
  json.add("created_at", delivery.created_at)
      .add("next_attempt_at", delivery.next_attempt_at)
      .add("waiting_for", delivery.waiting_for)
      .add("next_probe_at", delivery.next_probe_at)
      .add("give_up_at", delivery.give_up_at)
      .add("last_attempt_at", delivery.last_attempt_at)
      .add("last_status_code", delivery.last_status_code)
      .add("last_error", delivery.last_error)
      .add("last_error_detail", registry::shown_error(registry::audience_of(reader), delivery.last_error,
                                                      delivery.last_error_detail))
      .add("delivered_at", delivery.delivered_at);
  if (delivery.replay_id)
    json.add("replay_id", "rpl_" + delivery.replay_id->hex());
  else
    json.raw("replay_id", "null");
  return json;
}

}  // namespace postrider::history
