#include "postrider/history/delivery_rows.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "postrider/history/deliveries.sql.hpp"
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

enum HistoryColumn : size_t {
  delivery_id,
  attempt,
  outcome,
  endpoint_id,
  event_id,
  tenant_id,
  status_code,
  error,
  error_detail,
  started_at,
  total_us,
  created_at,
  next_attempt_at,
  replay_id
};

enum LiveColumn : size_t {
  live_id,
  live_endpoint,
  live_event,
  live_tenant,
  live_attempts,
  live_due,
  live_created,
  live_replay
};

Delivery read_attempt(const pg::Rows& rows, size_t row) {
  Delivery delivery;
  delivery.id = {rows.get<base::Uuid>(row, delivery_id)};
  delivery.endpoint = {rows.get<base::Uuid>(row, endpoint_id)};
  delivery.event = {rows.get<base::Uuid>(row, event_id)};
  delivery.tenant = rows.get<std::string>(row, tenant_id);
  delivery.status =
      parse_delivery_status(rows.get<std::string_view>(row, outcome)).value_or(DeliveryStatus::retrying);
  delivery.attempts = rows.get<int32_t>(row, attempt);
  delivery.created_at = rows.get<base::Timestamp>(row, created_at);
  delivery.replay_id = rows.get<std::optional<base::Uuid>>(row, replay_id);
  delivery.next_attempt_at = rows.get<std::optional<base::Timestamp>>(row, next_attempt_at);
  delivery.last_attempt_at = rows.get<base::Timestamp>(row, started_at);
  delivery.last_status_code = rows.get<std::optional<int32_t>>(row, status_code);
  delivery.last_error = rows.get<std::optional<std::string>>(row, error);
  delivery.last_error_detail = rows.get<std::optional<std::string>>(row, error_detail);
  if (delivery.status == DeliveryStatus::delivered)
    delivery.delivered_at = *delivery.last_attempt_at + base::Microseconds(rows.get<int32_t>(row, total_us));
  return delivery;
}

// What is known of one delivery: its attempts, and the note of one that ended without an exchange.
struct Told {
  std::optional<Delivery> note, last;

  void add(Delivery attempt) {
    if (attempt.attempts == 0)
      note = std::move(attempt);
    else if (!last || last->attempts < attempt.attempts)
      last = std::move(attempt);
  }
  Delivery whole() && {
    if (!note) return std::move(*last);
    Delivery ended = std::move(*note);
    ended.next_attempt_at.reset();
    if (!last) {
      ended.last_attempt_at.reset();
      return ended;
    }
    ended.attempts = last->attempts;
    ended.last_attempt_at = last->last_attempt_at;
    ended.last_status_code = last->last_status_code;
    if (!ended.last_error) ended.last_error = std::move(last->last_error);
    return ended;
  }
};

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

std::vector<Delivery> read_history(const pg::Rows& rows) {
  std::vector<Delivery> deliveries;
  Told told;
  std::optional<model::DeliveryId> id;
  for (size_t row = 0; row < rows.size(); ++row) {
    Delivery next = read_attempt(rows, row);
    if (id && *id != next.id) deliveries.push_back(std::exchange(told, Told{}).whole());
    id = next.id;
    told.add(std::move(next));
  }
  if (id) deliveries.push_back(std::move(told).whole());
  return deliveries;
}

Delivery read_live(const pg::Rows& rows, size_t row) {
  Delivery delivery;
  delivery.id = {rows.get<base::Uuid>(row, live_id)};
  delivery.endpoint = {rows.get<base::Uuid>(row, live_endpoint)};
  delivery.event = {rows.get<base::Uuid>(row, live_event)};
  delivery.tenant = rows.get<std::string>(row, live_tenant);
  delivery.attempts = rows.get<int32_t>(row, live_attempts);
  delivery.status = delivery.attempts == 0 ? DeliveryStatus::pending : DeliveryStatus::retrying;
  delivery.next_attempt_at = rows.get<base::Timestamp>(row, live_due);
  delivery.created_at = rows.get<base::Timestamp>(row, live_created);
  delivery.replay_id = rows.get<std::optional<base::Uuid>>(row, live_replay);
  return delivery;
}

void add_history(Delivery& live, const Delivery& history) {
  live.last_attempt_at = history.last_attempt_at;
  live.last_status_code = history.last_status_code;
  live.last_error = history.last_error;
  live.last_error_detail = history.last_error_detail;
}

runtime::Task<DeliveryNames> find_names(pg::Link& link, const std::vector<Delivery>& deliveries) {
  DeliveryNames names;
  if (deliveries.empty()) co_return names;
  const auto events = sorted_ids(deliveries, &Delivery::event);
  const auto endpoints = sorted_ids(deliveries, &Delivery::endpoint);
  pg::Batch batch;
  batch.with(sql::events_of_ids, events, events.front(), events.back())
      .with(sql::endpoints_of_ids, endpoints);
  const std::vector<pg::Rows> found = co_await link.run(std::move(batch));
  for (size_t row = 0; row < found[0].size(); ++row) {
    const model::EventId id{found[0].get<base::Uuid>(row, 0)};
    names.events[id] = {found[0].get<std::optional<std::string>>(row, 1).value_or(id.public_id()),
                        found[0].get<std::string>(row, 2), found[0].get<std::optional<std::string>>(row, 3),
                        found[0].get<std::optional<std::string>>(row, 4)};
  }
  for (size_t row = 0; row < found[1].size(); ++row)
    names.endpoints[{found[1].get<base::Uuid>(row, 0)}] = {
        found[1].get<std::string>(row, 1), found[1].get<std::string>(row, 2), found[1].get<int32_t>(row, 3)};
  co_return names;
}

runtime::Task<void> mark_processing(pg::Link& link, std::vector<Delivery>& deliveries) {
  std::vector<base::Uuid> waiting;
  for (const Delivery& delivery : deliveries)
    if (delivery.status == DeliveryStatus::pending || delivery.status == DeliveryStatus::retrying)
      waiting.push_back(delivery.id.uuid);
  if (waiting.empty()) co_return;
  pg::Params params(waiting);
  const pg::Rows rows = co_await link.run_one(sql::in_flight_of, std::move(params));
  std::unordered_set<model::DeliveryId> sent;
  for (size_t row = 0; row < rows.size(); ++row) sent.insert({rows.get<base::Uuid>(row, 0)});
  for (Delivery& delivery : deliveries) {
    const bool is_waiting =
        delivery.status == DeliveryStatus::pending || delivery.status == DeliveryStatus::retrying;
    if (is_waiting && sent.contains(delivery.id)) delivery.status = DeliveryStatus::processing;
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
