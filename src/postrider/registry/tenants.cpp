#include "postrider/registry/tenants.hpp"

#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/tenants.sql.hpp"

namespace postrider::registry {

namespace {

using model::TenantId;
using model::TenantStatus;
using runtime::Task;

pg::Params settings_parameters(const TenantId& id, const TenantSettings& settings) {
  return pg::Params(id, settings.name, settings.max_in_flight, settings.rate_per_second,
                    settings.publish_rate_per_second, settings.payload_bytes_max, settings.endpoints_max,
                    json_column(settings.contacts), json_column(settings.metadata));
}

Tenant read_tenant(const pg::Rows& rows, size_t row) {
  Tenant tenant;
  size_t column = 0;
  tenant.id = rows.get<std::string>(row, column++);
  tenant.settings.name = rows.get<std::optional<std::string>>(row, column++);
  tenant.settings.max_in_flight = rows.get<std::optional<int32_t>>(row, column++);
  tenant.settings.rate_per_second = rows.get<std::optional<double>>(row, column++);
  tenant.settings.publish_rate_per_second = rows.get<std::optional<double>>(row, column++);
  tenant.settings.payload_bytes_max = rows.get<std::optional<int32_t>>(row, column++);
  tenant.settings.endpoints_max = rows.get<std::optional<int32_t>>(row, column++);
  tenant.settings.contacts = rows.get<std::optional<std::string>>(row, column++);
  tenant.settings.metadata = rows.get<std::optional<std::string>>(row, column++);
  tenant.status = known(model::parse_tenant_status(rows.get<std::string_view>(row, column++)));
  tenant.status_reason = rows.get<std::optional<std::string>>(row, column++);
  tenant.status_since = rows.get<base::Timestamp>(row, column++);
  tenant.endpoint_count = rows.get<int32_t>(row, column++);
  tenant.revision = rows.get<int32_t>(row, column++);
  tenant.created_at = rows.get<base::Timestamp>(row, column++);
  tenant.updated_at = rows.get<base::Timestamp>(row, column++);
  return tenant;
}

bool is_same(const TenantSettings& before, TenantSettings after) {
  if (is_same_json(before.contacts, after.contacts)) after.contacts = before.contacts;
  if (is_same_json(before.metadata, after.metadata)) after.metadata = before.metadata;
  return before == after;
}

std::vector<TenantId> one(const TenantId& id) {
  return {id};
}

Snapshot snapshot(const Tenant& tenant) {
  const TenantSettings& settings = tenant.settings;
  Snapshot fields;
  fields.add("name", settings.name)
      .add("status", model::label(tenant.status))
      .add("status_reason", tenant.status_reason)
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("publish_rate_per_second", settings.publish_rate_per_second)
      .add("payload_bytes_max", settings.payload_bytes_max)
      .add("endpoints_max", settings.endpoints_max)
      .raw_or_null("contacts", settings.contacts)
      .raw_or_null("metadata", settings.metadata);
  return fields;
}

// A change of one tenant, as the audit log wants it.
struct TenantChange {
  const Caller& caller;
  const TenantId& id;
  std::string_view action;
  std::optional<Snapshot> before = {};
  std::optional<std::string> reason = {};
};

// Makes the change, writes it down with the tenant as it then is, and commits.
Task<TenantResult> finish(pg::Transaction& transaction, pg::Batch batch, TenantChange change) {
  const size_t loaded = batch.size();
  batch.with(sql::load_tenants, one(change.id));
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  Tenant tenant = read_tenant(answers[loaded], 0);
  pg::Batch last;
  add_audit(last, change.caller,
            {.action = change.action,
             .tenant = change.id,
             .object = change.id,
             .before = std::move(change.before),
             .after = snapshot(tenant),
             .reason = std::move(change.reason)});
  add_note(last, ChangeKind::tenant, change.id);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return tenant;
}

// Locks the tenant and reads it as it is then.
Task<TenantResult> lock(pg::Transaction& transaction, const Caller& caller, const TenantId& id) {
  pg::Batch batch;
  batch.with(sql::lock_tenant, id).with(sql::load_tenants, one(id));
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(batch));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_tenant}};
  Tenant tenant = read_tenant(found[1], 0);
  if (!caller.if_match.accepts(tenant.revision))
    co_return base::Failure{Refusal{RefusalKind::changed_meanwhile}};
  co_return tenant;
}

struct NewStatus {
  TenantStatus status;
  std::optional<std::string> reason;
};

Task<TenantResult> set_status(pg::Link& link, const Caller& caller, TenantId id, NewStatus wanted) {
  if (id == reserved_tenant_id) co_return base::Failure{Refusal{RefusalKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  TenantResult found = co_await lock(transaction, caller, id);
  if (!found) co_return std::move(found);

  const bool is_pause = wanted.status == TenantStatus::paused;
  const bool is_same = found->status == wanted.status;
  // Whoever pauses what is paused may have a better reason.
  const bool says_more = is_pause && wanted.reason && wanted.reason != found->status_reason;
  if (is_same && !says_more) co_return std::move(found);
  pg::Batch batch;
  batch.with(sql::set_tenant_status, id, model::label(wanted.status), wanted.reason);
  if (!is_same) batch.with(is_pause ? sql::open_tenant_pause : sql::close_tenant_pause, id);
  TenantChange change{caller, id, is_pause ? "tenant.pause" : "tenant.resume", snapshot(*found),
                      std::move(wanted.reason)};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

}  // namespace

Task<TenantResult> create_tenant(pg::Link& link, const Caller& caller, TenantId id, TenantSettings settings) {
  if (id == reserved_tenant_id) co_return base::Failure{Refusal{RefusalKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  pg::Batch insert(sql::insert_tenant, settings_parameters(id, settings));
  insert.with(sql::is_deleted_tenant, id);
  const std::vector<pg::Rows> inserted = co_await transaction.run(std::move(insert));
  if (inserted[0].empty()) {
    const bool is_deleted = inserted[1].get<bool>(0, 0);
    co_return base::Failure{Refusal{is_deleted ? RefusalKind::tenant_id_used : RefusalKind::tenant_exists}};
  }
  pg::Batch nothing_more;
  TenantChange change{caller, id, "tenant.create"};
  co_return co_await finish(transaction, std::move(nothing_more), std::move(change));
}

Task<std::optional<Tenant>> find_tenant(pg::Link& link, TenantId id) {
  pg::Params params(one(id));
  const pg::Rows rows = co_await link.run_one(sql::load_tenants, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  co_return read_tenant(rows, 0);
}

Task<std::vector<Tenant>> list_tenants(pg::Link& link, std::string after, int limit) {
  pg::Params page(after, limit);
  const pg::Rows listed = co_await link.run_one(sql::list_tenant_ids, std::move(page));
  std::vector<TenantId> ids;
  for (size_t row = 0; row < listed.size(); ++row) ids.push_back(listed.get<std::string>(row, 0));
  pg::Params wanted(ids);
  const pg::Rows rows = co_await link.run_one(sql::load_tenants, std::move(wanted));
  std::vector<Tenant> tenants;
  for (size_t row = 0; row < rows.size(); ++row) tenants.push_back(read_tenant(rows, row));
  co_return tenants;
}

Task<TenantResult> change_tenant(pg::Link& link, const Caller& caller, TenantId id, TenantEdit edit) {
  if (id == reserved_tenant_id) co_return base::Failure{Refusal{RefusalKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  TenantResult found = co_await lock(transaction, caller, id);
  if (!found) co_return std::move(found);
  TenantSettings settings = found->settings;
  if (!edit(settings)) co_return base::Failure{Refusal{RefusalKind::abandoned}};
  if (is_same(found->settings, settings)) co_return std::move(found);
  pg::Batch batch(sql::update_tenant, settings_parameters(id, settings));
  TenantChange change{caller, id, "tenant.change", snapshot(*found)};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

Task<TenantResult> pause_tenant(pg::Link& link, const Caller& caller, TenantId id,
                                std::optional<std::string> reason) {
  NewStatus wanted{TenantStatus::paused, std::move(reason)};
  co_return co_await set_status(link, caller, std::move(id), std::move(wanted));
}

Task<TenantResult> resume_tenant(pg::Link& link, const Caller& caller, TenantId id,
                                 std::optional<std::string> reason) {
  NewStatus wanted{TenantStatus::active, std::move(reason)};
  co_return co_await set_status(link, caller, std::move(id), std::move(wanted));
}

Task<std::optional<Refusal>> delete_tenant(pg::Link& link, const Caller& caller, TenantId id) {
  if (id == reserved_tenant_id) co_return Refusal{RefusalKind::reserved_tenant};
  pg::Transaction transaction = co_await link.begin();
  const TenantResult found = co_await lock(transaction, caller, id);
  if (!found) co_return found.error();

  pg::Batch batch;
  batch.with(sql::delete_endpoints_of_tenant, id)
      .with(sql::delete_secrets_of_tenant, id)
      .with(sql::delete_subscriptions_of_tenant, id)
      .with(sql::close_pauses_of_tenant, id)
      .with(sql::revoke_keys_of_tenant, id)
      .with(sql::delete_tenant, id);
  add_audit(batch, caller,
            {.action = "tenant.delete", .tenant = id, .object = id, .before = snapshot(*found)});
  add_note(batch, ChangeKind::key, id);
  add_note(batch, ChangeKind::tenant, id);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
