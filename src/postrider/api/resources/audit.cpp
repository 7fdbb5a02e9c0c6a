// /v1/audit: the log of changes.
#include "postrider/registry/audit.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

using registry::AuditFilter;
using registry::AuditRecord;

// Bound keys do not see the operators' IDs, addresses and reasons.
AuditRecord shown_to(const registry::Principal& reader, AuditRecord record) {
  if (!reader.is_bound() || record.on_behalf_of != model::Actor::operator_) return record;
  record.actor.clear();
  record.actor_name.reset();
  record.reason.reset();
  record.address.reset();
  record.request_id.reset();
  return record;
}

std::string record_json(const AuditRecord& record) {
  const std::optional<std::string> nothing;
  JsonObject actor;
  actor.add("kind", record.actor_kind)
      .add("id", record.actor.empty() ? nothing : std::optional(record.actor))
      .add("name", record.actor_name)
      .add("on_behalf_of", model::label(record.on_behalf_of));
  JsonObject json;
  json.add("id", fmt::format("aud_{:016x}", record.id))
      .add("at", record.at)
      .raw("actor", actor.text())
      .add("action", record.action)
      .add("tenant_id", record.tenant)
      .add("object", record.object)
      .raw_or_null("before", record.before)
      .raw_or_null("after", record.after)
      .add("reason", record.reason)
      .add("address", record.address)
      .add("request_id", record.request_id);
  return json.text();
}

// "<microseconds>.<id>" of the last record of a page.
std::string key_of(const AuditRecord& record) {
  return fmt::format("{}.{}", record.at.time_since_epoch().count(), record.id);
}

void read_cursor(Query& query, AuditFilter& filter) {
  const std::string after = query.after();
  if (after.empty()) return;
  const char* end = after.data() + after.size();
  int64_t microseconds = 0;
  const auto time = std::from_chars(after.data(), end, microseconds);
  if (time.ec == std::errc() && time.ptr != end && *time.ptr == '.') {
    const auto id = std::from_chars(time.ptr + 1, end, filter.before_id);
    filter.before_at = base::Timestamp(std::chrono::microseconds(microseconds));
    if (id.ec == std::errc() && id.ptr == end) return;
  }
  query.reject("cursor", "invalid cursor");
}

AuditFilter read_filter(const Call& call, Query& query) {
  AuditFilter filter;
  filter.tenant = query.value("tenant");
  filter.actor = query.value("actor");
  filter.action = query.value("action");
  filter.object = query.value("object");
  const auto [since, until] = query.range();
  filter.since = since;
  filter.until = until;
  filter.limit = query.limit() + 1;
  read_cursor(query, filter);
  if (call.principal.tenant) {
    if (filter.tenant && filter.tenant != call.principal.tenant)
      query.reject("tenant", "this key is bound to another tenant");
    filter.tenant = call.principal.tenant;
    filter.is_customer = true;
  }
  return filter;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  AuditFilter filter = read_filter(call, query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const int limit = filter.limit - 1;
  const pg::Pool::Handle lease = co_await call.database();
  const std::vector<AuditRecord> records = co_await registry::list_audit(*lease, std::move(filter));
  std::vector<PageRow> rows;
  for (const auto& record : records)
    rows.push_back({key_of(record), record_json(shown_to(call.principal, record))});
  co_return page(std::move(rows), limit);
}

}  // namespace

void add_audit_routes(Routes& routes) {
  routes.add(Method::get, "/v1/audit", Access::operate, list, {.bound_keys = BoundKeys::confined});
}

}  // namespace postrider::api
