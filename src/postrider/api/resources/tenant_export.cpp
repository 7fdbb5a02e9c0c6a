// /v1/tenants/{tenant}/export: everything that is kept about a tenant.
#include <utility>

#include "postrider/api/resources/lists.hpp"
#include "postrider/api/resources/tenant_document.hpp"
#include "postrider/api/wire/export.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/events.sql.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr int kEventsPerPage = 25;  // each may have a body of payload_bytes_max

// `body` has the bytes that receivers get; null if the caller may not read payloads, or after an erasure.
std::string event_json(const history::sql::list_event_bodies::Row& row, const Call& call) {
  std::optional<std::string_view> body;
  if (call.principal.sees_payloads && !row.body.empty()) body = row.body;
  JsonObject json;
  json.add("id", row.public_id ? std::string(*row.public_id) : model::EventId{row.id}.public_id())
      .add("type", row.type)
      .add("version", row.version)
      .add("subject", row.subject)
      .add("tenant_id", call.tenant())
      .add("created_at", row.created_at)
      .add("body", body);
  return json.text();
}

// Each version of an event is an item of its own.
Task<Response> list_event_bodies(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  base::Uuid before;
  before.bytes.fill(0xFF);
  if (const std::string after = query.after(); !after.empty()) {
    const auto last = base::Uuid::from_hex(after);
    if (last)
      before = *last;
    else
      query.reject("cursor", "invalid cursor");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const model::TenantId tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows = co_await lease->run(
      history::sql::list_event_bodies{.tenant = tenant, .before = before, .rows = limit + 1});
  std::vector<PageRow> items;
  for (const auto& row : rows) items.push_back({row.id.hex(), event_json(row, call)});
  co_return page(std::move(items), limit);
}

Task<Response> export_tenant(Call& call) {
  Query query(call.request);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  std::string first;
  {
    const pg::Pool::Handle lease = co_await call.database();
    const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, call.tenant());
    if (!tenant) co_return call.reject(unknown("tenant"));
    const http::Audience audience = registry::audience_of(call.principal);
    first = R"({"kind":"tenant","data":)" + tenant_json(*tenant, audience) + "}";
  }
  std::vector<ExportPart> parts = {
      {"endpoint", list_endpoints},       {"event", list_event_bodies, kEventsPerPage},
      {"delivery", list_deliveries},      {"attempt", list_attempts},
      {"dead_letter", list_dead_letters}, {"replay", list_replays}};
  auto exporting = export_parts(call, std::move(first), std::move(parts), "tenant.ndjson");
  co_return co_await exporting;
}

}  // namespace

void add_tenant_export_routes(Routes& routes) {
  routes.add(Method::get, "/v1/tenants/{tenant}/export", Access::operate, export_tenant);
}

}  // namespace postrider::api
