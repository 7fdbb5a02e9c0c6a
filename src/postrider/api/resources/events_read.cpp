// GET /v1/tenants/{tenant}/events and /{event}: published events and their deliveries.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/wire/export.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/events.sql.hpp"
#include "postrider/history/newest_days.hpp"
#include "postrider/model/event_pattern.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/model/id_time.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr int32_t kScannedMax = 2'000;     // rows that a filter may scan for one page
constexpr int32_t kDeliveriesShown = 250;  // per event

using EventRow = history::sql::ListedEventRow;
using UnmatchedRows = pg::RowsOf<history::sql::unmatched_endpoints>;
using VersionRows = pg::RowsOf<history::sql::versions_of_event>;

// Of a row of find_event or list_events.
template <class Row>
JsonObject event_json(const Row& row, const model::TenantId& tenant) {
  JsonObject json;
  json.add("id", row.public_id ? std::string(*row.public_id) : model::EventId{row.id}.public_id())
      .add("type", row.type)
      .add("version", row.version)
      .add("subject", row.subject)
      .add("tenant_id", tenant)
      .add("created_at", row.created_at);
  return json;
}

// The data in the bytes that were sent; null once it was erased.
std::string_view data_of(std::string_view sent) {
  constexpr std::string_view kName = ",\"data\":";
  const size_t at = sent.find(kName);  // strings before it have their quotes escaped
  if (at == std::string_view::npos || !sent.ends_with('}')) return "null";
  sent.remove_suffix(1);
  return sent.substr(at + kName.size());
}

struct Filter {
  std::optional<std::string> type, subject;
  base::Uuid from;    // inclusive
  base::Uuid before;  // exclusive
  int limit = 0;

  bool accepts(const EventRow& row) const {
    if (type && !model::matches(*type, row.type)) return false;
    return !subject || row.subject == *subject;
  }
};

Filter read_filter(Query& query) {
  Filter filter;
  filter.type = query.pattern("type");
  filter.subject = query.value("subject");
  filter.before.bytes.fill(0xFF);
  const auto [since, until] = query.range();
  if (since) filter.from = model::id_floor(*since);
  if (until) filter.before = model::id_floor(*until);
  filter.limit = query.limit();
  const std::string after = query.after();
  if (after.empty()) return filter;
  if (const auto last = base::Uuid::from_hex(after))
    filter.before = std::min(filter.before, *last);
  else
    query.reject("cursor", "invalid cursor");
  return filter;
}

// Takes rows until the page is full or the scan ends; then the next page begins behind the last row looked
// at.
Task<Response> event_page(const Call& call, const pg::RowList<EventRow>& rows, const Filter& filter,
                          int32_t scanned_max) {
  const model::TenantId tenant = call.tenant();
  std::vector<std::string> items;
  runtime::Pause pause(call.services.loop);
  size_t row = 0;
  for (; row < rows.size() && items.size() < static_cast<size_t>(filter.limit); ++row) {
    const EventRow event = rows[row];
    if (filter.accepts(event)) items.push_back(event_json(event, tenant).text());
    co_await pause;
  }
  std::optional<std::string> next;
  if (row < rows.size() || rows.size() == static_cast<size_t>(scanned_max)) next = rows[row - 1].id.hex();
  co_return page(items, next);
}

Task<Response> list_page(Call& call) {
  Query query(call.request);
  const Filter filter = read_filter(query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const model::TenantId tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, tenant);
  if (!known) co_return call.reject(unknown("tenant"));
  const int32_t scanned_max = filter.type ? kScannedMax : filter.limit + 1;
  const std::vector<base::Uuid> bounds = history::lower_bounds(filter.before, filter.from, base::wall_now());
  pg::RowList<EventRow> rows;
  for (const base::Uuid& from : bounds) {
    if (filter.subject)
      rows = co_await lease->run(history::sql::list_events_of_subject{.tenant = tenant,
                                                                      .before = filter.before,
                                                                      .from = from,
                                                                      .subject = *filter.subject,
                                                                      .rows = scanned_max});
    else
      rows = co_await lease->run(history::sql::list_events{
          .tenant = tenant, .before = filter.before, .from = from, .rows = scanned_max});
    if (rows.size() == static_cast<size_t>(scanned_max)) break;
  }
  co_return co_await event_page(call, rows, filter, scanned_max);
}

Task<Response> list(Call& call) {
  if (!is_export(call)) return list_page(call);
  return export_list(call, list_page,
                     {"events", {"id", "tenant_id", "type", "version", "subject", "created_at"}});
}

std::string deliveries_json(const history::DeliveryPage& page, const registry::Principal& reader) {
  std::vector<std::string> items;
  for (const history::Delivery& delivery : page.deliveries)
    items.push_back(history::delivery_json(delivery, page.names, reader).text());
  return json_array(items);
}

// The reasons why no endpoint received the event. No value for an event with deliveries.
std::optional<std::string> explanation(const history::DeliveryPage& page, const UnmatchedRows& unmatched) {
  if (!page.deliveries.empty()) return std::nullopt;
  if (unmatched.empty()) return "No endpoint received this event: the tenant has no endpoints.";
  std::map<std::string, int> reasons;
  for (const auto& row : unmatched) ++reasons[std::string(row.reason)];
  std::string text = "No endpoint received this event:";
  for (const auto& [reason, count] : reasons)
    text += (text.ends_with(':') ? " " : ", ") + std::to_string(count) +
            (count == 1 ? " endpoint: " : " endpoints: ") + reason;
  return text + ".";
}

std::string unmatched_json(const UnmatchedRows& rows) {
  std::vector<std::string> items;
  for (const auto& row : rows) {
    JsonObject json;
    json.add("endpoint_id", row.public_id).add("reason", row.reason);
    items.push_back(json.text());
  }
  return json_array(items);
}

// An event in several versions: their names, and their data for keys that may see it.
std::string versions_json(const Call& call, const VersionRows& rows) {
  std::vector<std::string> items;
  for (const auto& row : rows) {
    JsonObject json;
    json.add("version", row.version);
    if (call.principal.sees_payloads) json.raw("data", data_of(row.body));
    items.push_back(json.text());
  }
  return json_array(items);
}

std::vector<std::optional<std::string_view>> names_of(const VersionRows& versions) {
  std::vector<std::optional<std::string_view>> names;
  for (const auto& row : versions) names.push_back(row.version);
  return names;
}

Task<Response> show(Call& call) {
  const model::TenantId tenant = call.tenant();
  const std::string wanted = call.parameter("event");
  const auto own = model::EventId::from_public_id(wanted);
  std::optional<base::Uuid> uuid;
  if (own) uuid = own->uuid;
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows =
      co_await lease->run(history::sql::find_event{.tenant = tenant, .public_id = wanted, .id = uuid});
  if (rows.empty()) co_return call.reject(unknown("event"));
  const auto row = rows.front();
  const model::EventId event{row.id};
  history::DeliveryFilter filter;
  filter.tenant = tenant;
  filter.event = event;
  filter.before.bytes.fill(0xFF);
  filter.limit = kDeliveriesShown;
  const auto deliveries = co_await history::scan_deliveries(*lease, std::move(filter));
  const auto range = model::delivery_range(event, event);
  const auto versions = co_await lease->run(history::sql::versions_of_event{
      .first = range.first.uuid, .last = range.last.uuid, .event = event.uuid});
  const auto patterns = model::patterns_matching(row.type);
  const auto version_names = names_of(versions);
  const std::string delivery_head = model::delivery_head_of(event);
  const auto unmatched_rows =
      co_await lease->run(history::sql::unmatched_endpoints{.published_at = model::time_of(event.uuid),
                                                            .delivery_head = delivery_head,
                                                            .tenant = tenant,
                                                            .versions = version_names,
                                                            .patterns = patterns,
                                                            .rows = kDeliveriesShown});

  JsonObject json = event_json(row, tenant);
  if (call.principal.sees_payloads) json.raw("data", data_of(row.body));
  if (row.has_versions) json.raw("versions", versions_json(call, versions));
  json.raw("deliveries", deliveries_json(*deliveries, call.principal))
      .raw("unmatched_endpoints", unmatched_json(unmatched_rows))
      .add("explanation", explanation(*deliveries, unmatched_rows));
  co_return Response::json(200, json.text());
}

}  // namespace

void add_event_read_routes(Routes& routes) {
  routes.add(Method::get, "/v1/tenants/{tenant}/events", Access::read, list);
  routes.add(Method::get, "/v1/tenants/{tenant}/events/{event}", Access::read, show);
}

}  // namespace postrider::api
