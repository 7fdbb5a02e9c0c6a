// GET /v1/tenants/{tenant}/events and /{event}: what was published, and what became of it.
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
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr int32_t kScannedMax = 2'000;     // rows that a filter may look at for one page
constexpr int32_t kDeliveriesShown = 250;  // per event

base::Timestamp time_of(const base::Uuid& id) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  return base::Timestamp(std::chrono::milliseconds(ms));
}

// The first columns of find_event and list_events.
enum EventColumn : size_t { id, public_id, type, version, subject, created_at, body, has_versions };

JsonObject event_json(const pg::Rows& rows, size_t row, const model::TenantId& tenant) {
  const model::EventId event{rows.get<base::Uuid>(row, id)};
  JsonObject json;
  json.add("id", rows.get<std::optional<std::string>>(row, public_id).value_or(event.public_id()))
      .add("type", rows.get<std::string_view>(row, type))
      .add("version", rows.get<std::optional<std::string>>(row, version))
      .add("subject", rows.get<std::optional<std::string>>(row, subject))
      .add("tenant_id", tenant)
      .add("created_at", rows.get<base::Timestamp>(row, created_at));
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

  bool accepts(const pg::Rows& rows, size_t row) const {
    if (type && !model::matches(*type, rows.get<std::string_view>(row, EventColumn::type))) return false;
    if (!subject) return true;
    return rows.get<std::optional<std::string_view>>(row, EventColumn::subject) == *subject;
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
    query.refuse("cursor", "invalid cursor");
  return filter;
}

// Takes rows until the page is full or the scan ends; then the next page begins behind the last row looked
// at.
Task<Response> event_page(const Call& call, const pg::Rows& rows, const Filter& filter, int32_t scanned_max) {
  const model::TenantId tenant = call.tenant();
  std::vector<std::string> items;
  runtime::Pause pause(call.services.loop);
  size_t row = 0;
  for (; row < rows.size() && items.size() < static_cast<size_t>(filter.limit); ++row) {
    if (filter.accepts(rows, row)) items.push_back(event_json(rows, row, tenant).text());
    co_await pause;
  }
  std::optional<std::string> next;
  if (row < rows.size() || rows.size() == static_cast<size_t>(scanned_max))
    next = rows.get<base::Uuid>(row - 1, id).hex();
  co_return page(items, next);
}

Task<Response> list_page(Call& call) {
  Query query(call.request);
  const Filter filter = read_filter(query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  const model::TenantId tenant = call.tenant();
  const pg::Pool::Lease lease = co_await call.database();
  const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, tenant);
  if (!known) co_return call.refuse(unknown_tenant());
  const int32_t scanned_max = filter.type ? kScannedMax : filter.limit + 1;
  const pg::Statement statement =
      filter.subject ? history::sql::list_events_of_subject : history::sql::list_events;
  const std::vector<base::Uuid> bounds = history::lower_bounds(filter.before, filter.from, base::wall_now());
  pg::Rows rows;
  for (const base::Uuid& from : bounds) {
    pg::Params params(tenant, filter.before, from, scanned_max);
    if (filter.subject) params.add(*filter.subject);
    rows = co_await lease->run_one(statement, std::move(params));
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

// Why no endpoint received the event. Nothing for an event that has deliveries.
std::optional<std::string> explanation(const history::DeliveryPage& page, const pg::Rows& unmatched) {
  if (!page.deliveries.empty()) return std::nullopt;
  if (unmatched.empty()) return "No endpoint received this event: the tenant has no endpoints.";
  std::map<std::string, int> reasons;
  for (size_t row = 0; row < unmatched.size(); ++row) ++reasons[unmatched.get<std::string>(row, 1)];
  std::string text = "No endpoint received this event:";
  for (const auto& [reason, count] : reasons)
    text += (text.ends_with(':') ? " " : ", ") + std::to_string(count) +
            (count == 1 ? " endpoint: " : " endpoints: ") + reason;
  return text + ".";
}

std::string unmatched_json(const pg::Rows& rows) {
  std::vector<std::string> items;
  for (size_t row = 0; row < rows.size(); ++row) {
    JsonObject json;
    json.add("endpoint_id", rows.get<std::string_view>(row, 0))
        .add("reason", rows.get<std::string_view>(row, 1));
    items.push_back(json.text());
  }
  return json_array(items);
}

// An event in several versions: their names, and their data for keys that may see it.
std::string versions_json(const Call& call, const pg::Rows& rows) {
  std::vector<std::string> items;
  for (size_t row = 0; row < rows.size(); ++row) {
    JsonObject json;
    json.add("version", rows.get<std::string_view>(row, 0));
    if (call.principal.sees_payloads) json.raw("data", data_of(rows.get<std::string_view>(row, 1)));
    items.push_back(json.text());
  }
  return json_array(items);
}

std::vector<std::optional<std::string>> names_of(const pg::Rows& versions) {
  std::vector<std::optional<std::string>> names;
  for (size_t row = 0; row < versions.size(); ++row)
    names.push_back(versions.get<std::optional<std::string>>(row, 0));
  return names;
}

Task<Response> show(Call& call) {
  const model::TenantId tenant = call.tenant();
  const std::string wanted = call.parameter("event");
  const auto own = model::EventId::from_public_id(wanted);
  std::optional<base::Uuid> uuid;
  if (own) uuid = own->uuid;
  pg::Params find(tenant, wanted, uuid);
  const pg::Pool::Lease lease = co_await call.database();
  const pg::Rows rows = co_await lease->run_one(history::sql::find_event, std::move(find));
  if (rows.empty()) {
    http::Problem unknown;
    unknown.status = 404;
    unknown.type = "unknown-event";
    unknown.detail = "There is no such event.";
    co_return call.refuse(unknown);
  }
  const model::EventId event{rows.get<base::Uuid>(0, id)};
  history::DeliveryFilter filter;
  filter.tenant = tenant;
  filter.event = event;
  filter.before.bytes.fill(0xFF);
  filter.limit = kDeliveriesShown;
  const auto deliveries = co_await history::scan_deliveries(*lease, std::move(filter));
  const auto range = model::delivery_range(event, event);
  pg::Params of_event(range.first.uuid, range.last.uuid, event.uuid);
  const pg::Rows versions = co_await lease->run_one(history::sql::versions_of_event, std::move(of_event));
  pg::Params unmatched(tenant, model::patterns_matching(rows.get<std::string_view>(0, type)),
                       names_of(versions), model::delivery_head_of(event), time_of(event.uuid),
                       kDeliveriesShown);
  const pg::Rows unmatched_rows =
      co_await lease->run_one(history::sql::unmatched_endpoints, std::move(unmatched));

  JsonObject json = event_json(rows, 0, tenant);
  if (call.principal.sees_payloads) json.raw("data", data_of(rows.get<std::string_view>(0, body)));
  if (rows.get<bool>(0, has_versions)) json.raw("versions", versions_json(call, versions));
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
