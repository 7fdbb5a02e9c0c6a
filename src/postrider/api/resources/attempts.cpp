// /v1/tenants/{tenant}/attempts and /v1/attempts: everything that was tried, over all deliveries.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/resources/lists.hpp"
#include "postrider/api/wire/export.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/attempt_rows.hpp"
#include "postrider/history/attempt_scan.hpp"
#include "postrider/history/delivery.sql.hpp"

namespace postrider::api {

namespace {

constexpr std::array<std::string_view, 4> kOutcomes{"delivered", "retrying", "dead_letter", "canceled"};

std::optional<int> parse_status_code(std::string_view text) {
  int code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (error != std::errc() || end != text.data() + text.size() || code < 100 || code > 999)
    return std::nullopt;
  return code;
}

// The rest of the filter; which deliveries is read apart.
history::AttemptFilter read_attempt_filter(Query& query) {
  history::AttemptFilter filter;
  filter.outcome = query.value("outcome");
  if (filter.outcome && std::ranges::count(kOutcomes, *filter.outcome) == 0)
    query.reject("outcome", "must be one of: delivered, retrying, dead_letter, canceled");
  if (const auto code = query.value("status_code")) {
    filter.status_code = parse_status_code(*code);
    if (!filter.status_code) query.reject("status_code", "must be a number from 100 to 999");
  }
  filter.error = query.value("error");
  const auto [since, until] = query.range();
  filter.since = since;
  filter.until = until;
  return filter;
}

using AttemptRows = pg::RowsOf<history::sql::attempts_of_keys>;

// As much of a delivery as find_names needs.
std::vector<history::Delivery> deliveries_of(const AttemptRows& rows) {
  std::vector<history::Delivery> deliveries;
  for (const auto& row : rows) {
    history::Delivery& delivery = deliveries.emplace_back();
    delivery.endpoint = {row.endpoint_id};
    delivery.event = {row.event_id};
  }
  return deliveries;
}

std::string item(const AttemptRows::Row& row, const history::DeliveryNames& names,
                 const registry::Principal& reader) {
  const model::EndpointId of_endpoint{row.endpoint_id};
  const model::EventId of_event{row.event_id};
  const auto endpoint = names.endpoints.find(of_endpoint);
  const auto event = names.events.find(of_event);
  const bool has_endpoint = endpoint != names.endpoints.end(), has_event = event != names.events.end();
  std::optional<std::string> type, of_replay;
  if (has_event) type = event->second.type;
  if (row.replay_id) of_replay = "rpl_" + row.replay_id->hex();
  JsonObject json;
  json.add("delivery_id", model::DeliveryId{row.delivery_id}.public_id())
      .add("tenant_id", row.tenant_id)
      .add("endpoint_id", has_endpoint ? endpoint->second.public_id : of_endpoint.public_id())
      .add("event_id", has_event ? event->second.public_id : of_event.public_id())
      .add("event_type", type)
      .add("replay_id", of_replay);
  return "{" + json.members() + "," + history::attempt_json(row, reader).members() + "}";
}

Task<std::vector<std::string>> details(const Call& call, pg::Link& link,
                                       const std::vector<history::AttemptKey>& keys) {
  std::vector<std::string> items;
  if (keys.empty()) co_return items;
  std::vector<base::Uuid> ids;
  std::vector<int32_t> numbers;
  for (const history::AttemptKey& key : keys) {
    ids.push_back(key.delivery);
    numbers.push_back(key.number);
  }
  const auto rows = co_await link.run(history::sql::attempts_of_keys{
      .deliveries = ids, .attempts = numbers, .smallest = ids.back(), .largest = ids.front()});
  const std::vector<history::Delivery> deliveries = deliveries_of(rows);
  const history::DeliveryNames names = co_await history::find_names(link, deliveries);
  runtime::Pause pause(call.services.loop);
  for (const auto& row : rows) {
    items.push_back(item(row, names, call.principal));
    co_await pause;
  }
  co_return items;
}

}  // namespace

Task<Response> list_attempts(Call& call) {
  Query query(call.request);
  DeliveryQuery which = read_which(call, query);
  history::AttemptFilter filter = read_attempt_filter(query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  auto resolved = co_await resolve(*lease, std::move(which));
  if (!resolved) co_return call.reject(resolved.error());
  if (!*resolved) co_return Response::json(200, R"({"data":[]})");
  filter.which = std::move(**resolved);
  const auto scanned = co_await history::scan_attempts(*lease, std::move(filter));
  if (!scanned) co_return call.reject(invalid({{"cursor", "invalid cursor"}}));
  const std::vector<std::string> items = co_await details(call, *lease, scanned->attempts);
  co_return page(items, scanned->next);
}

namespace {

Task<Response> list(Call& call) {
  if (!is_export(call)) return list_attempts(call);
  return export_list(
      call, list_attempts,
      {"attempts", {"delivery_id",      "tenant_id",         "endpoint_id",     "url",          "event_id",
                    "event_type",       "replay_id",         "attempt",         "kind",         "probe",
                    "outcome",          "status_code",       "error",           "error_detail", "started_at",
                    "phases",           "connection_reused", "is_resent",       "bytes_sent",   "response",
                    "response_preview", "address",           "next_attempt_at", "node_id",      "node"}});
}

}  // namespace

void add_attempt_routes(Routes& routes) {
  routes.add(Method::get, "/v1/tenants/{tenant}/attempts", Access::read, list);
  routes.add(Method::get, "/v1/attempts", Access::read, list);
}

}  // namespace postrider::api
