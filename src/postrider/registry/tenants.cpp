#include "postrider/registry/tenants.hpp"

#include <utility>

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

// Runs the last batch of a change, with the tenant as it then is and the note, and commits.
Task<TenantResult> finish(pg::Transaction& transaction, pg::Batch batch, const TenantId& id) {
  const size_t loaded = batch.size();
  batch.with(sql::load_tenants, one(id));
  add_note(batch, ChangeKind::tenant, id);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return read_tenant(answers[loaded], 0);
}

struct NewStatus {
  TenantStatus status;
  std::optional<std::string> reason;
};

Task<TenantResult> set_status(pg::Link& link, TenantId id, NewStatus wanted) {
  if (id == reserved_tenant_id) co_return base::Failure{Refusal{RefusalKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_tenant, id).with(sql::load_tenants, one(id));
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_tenant}};
  Tenant tenant = read_tenant(found[1], 0);
  if (tenant.status == wanted.status) co_return tenant;

  pg::Batch batch;
  batch.with(sql::set_tenant_status, id, model::label(wanted.status), wanted.reason);
  if (wanted.status == TenantStatus::paused)
    batch.with(sql::open_tenant_pause, id);
  else
    batch.with(sql::close_tenant_pause, id);
  co_return co_await finish(transaction, std::move(batch), id);
}

}  // namespace

Task<TenantResult> create_tenant(pg::Link& link, TenantId id, TenantSettings settings) {
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
  co_return co_await finish(transaction, std::move(nothing_more), id);
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

Task<TenantResult> change_tenant(pg::Link& link, TenantId id, TenantEdit edit,
                                 std::optional<int32_t> if_revision) {
  if (id == reserved_tenant_id) co_return base::Failure{Refusal{RefusalKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_tenant, id).with(sql::load_tenants, one(id));
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_tenant}};

  Tenant tenant = read_tenant(found[1], 0);
  if (if_revision && *if_revision != tenant.revision)
    co_return base::Failure{Refusal{RefusalKind::changed_meanwhile}};
  TenantSettings settings = tenant.settings;
  if (!edit(settings)) co_return base::Failure{Refusal{RefusalKind::abandoned}};
  if (is_same(tenant.settings, settings)) co_return tenant;
  pg::Batch batch(sql::update_tenant, settings_parameters(id, settings));
  co_return co_await finish(transaction, std::move(batch), id);
}

Task<TenantResult> pause_tenant(pg::Link& link, TenantId id, std::optional<std::string> reason) {
  NewStatus wanted{TenantStatus::paused, std::move(reason)};
  co_return co_await set_status(link, std::move(id), std::move(wanted));
}

Task<TenantResult> resume_tenant(pg::Link& link, TenantId id, std::optional<std::string> reason) {
  NewStatus wanted{TenantStatus::active, std::move(reason)};
  co_return co_await set_status(link, std::move(id), std::move(wanted));
}

Task<std::optional<Refusal>> delete_tenant(pg::Link& link, TenantId id) {
  if (id == reserved_tenant_id) co_return Refusal{RefusalKind::reserved_tenant};
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_tenant, id);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_tenant};

  pg::Batch batch;
  batch.with(sql::delete_endpoints_of_tenant, id)
      .with(sql::delete_secrets_of_tenant, id)
      .with(sql::delete_subscriptions_of_tenant, id)
      .with(sql::close_pauses_of_tenant, id)
      .with(sql::revoke_keys_of_tenant, id)
      .with(sql::delete_tenant, id);
  add_note(batch, ChangeKind::key, id);
  add_note(batch, ChangeKind::tenant, id);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
