#include "postrider/registry/tenants.hpp"

#include <utility>

#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/contact_secret.sql.hpp"
#include "postrider/registry/contacts.hpp"
#include "postrider/registry/contacts.sql.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/tenants.sql.hpp"

namespace postrider::registry {

namespace {

using model::TenantId;
using model::TenantStatus;
using runtime::Task;

Tenant read_tenant(const sql::load_tenants::Row& row) {
  Tenant tenant;
  tenant.id = row.id;
  tenant.settings.name = row.name;
  tenant.settings.max_in_flight = row.max_in_flight;
  tenant.settings.rate_per_second = row.rate_per_second;
  tenant.settings.publish_rate_per_second = row.publish_rate_per_second;
  tenant.settings.payload_bytes_max = row.payload_bytes_max;
  tenant.settings.endpoints_max = row.endpoints_max;
  tenant.settings.allow_networks = networks_of(row.allow_networks);
  tenant.settings.contacts = row.contacts;
  tenant.contact_states = row.contact_states;
  tenant.settings.metadata = row.metadata;
  tenant.status = known(model::parse_tenant_status(row.status));
  tenant.status_reason = row.status_reason;
  tenant.status_since = row.status_since;
  tenant.status_by = known(model::parse_actor(row.status_by));
  tenant.endpoint_count = row.endpoint_count;
  tenant.revision = row.revision;
  tenant.created_at = row.created_at;
  tenant.updated_at = row.updated_at;
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
      .add("status_by", model::label(tenant.status_by))
      .add("max_in_flight", settings.max_in_flight)
      .add("rate_per_second", settings.rate_per_second)
      .add("publish_rate_per_second", settings.publish_rate_per_second)
      .add("payload_bytes_max", settings.payload_bytes_max)
      .add("endpoints_max", settings.endpoints_max)
      .add("allow_networks", texts_of(settings.allow_networks))
      .raw_or_null("contacts", settings.contacts)
      .raw_or_null("metadata", settings.metadata);
  return fields;
}

// A change of one tenant, for the audit log.
struct TenantChange {
  const Caller& caller;
  const TenantId& id;
  std::string_view action;
  std::optional<Snapshot> before = {};
  std::optional<std::string> reason = {};
  std::optional<ContactSecret> secret = {};  // to store if the tenant has none
};

// Of the batch that makes the change: what the new list of contacts means.
void add_contacts(pg::Batch& batch, TenantChange& change, const Context& context,
                  const ContactsChange& contacts) {
  add_contacts_change(batch, change.caller, change.id, contacts);
  if (adds_url(contacts)) change.secret = generate_contact_secret(context.keys, change.id);
}

// Stores the secret if the tenant has none; true if it was stored.
Task<bool> store_secret(pg::Transaction& transaction, const TenantChange& change) {
  const sql::insert_contact_secret insert{.tenant = change.id, .sealed = pg::Bytes{change.secret->sealed}};
  const auto stored = co_await transaction.run(insert);
  if (stored.empty()) co_return false;
  Snapshot after;
  after.add("secret", masked_text);
  pg::Batch audit;
  add_audit(audit, change.caller,
            {.action = "contact_secret.create",
             .tenant = change.id,
             .object = change.id,
             .after = std::move(after)});
  co_await transaction.run(std::move(audit));
  co_return true;
}

// Makes the change, writes it down with the tenant as it then is, and commits.
Task<TenantResult> finish(pg::Transaction& transaction, pg::Batch batch, TenantChange change) {
  const auto loaded = batch.add(sql::load_tenants{.ids = one(change.id)});
  pg::Results results = co_await transaction.run(std::move(batch));
  Tenant tenant = read_tenant(results.take(loaded).front());
  if (change.secret) {
    const bool is_new = co_await store_secret(transaction, change);
    if (is_new) tenant.contact_secret = change.secret->text;
  }
  pg::Batch last;
  add_audit(last, change.caller,
            {.action = change.action,
             .tenant = change.id,
             .object = change.id,
             .before = std::move(change.before),
             .after = snapshot(tenant),
             .reason = std::move(change.reason)});
  add_note(last, ChangeKind::tenant, change.id);
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return tenant;
}

// Locks the tenant and reads it as it is then.
Task<TenantResult> load_locked(pg::Transaction& transaction, const Caller& caller, const TenantId& id) {
  const auto [locked, tenant_rows] =
      co_await transaction.run(sql::lock_tenant{.id = id}, sql::load_tenants{.ids = one(id)});
  if (locked.empty()) co_return base::Failure{Rejection{RejectionKind::unknown_tenant}};
  Tenant tenant = read_tenant(tenant_rows.front());
  if (!caller.if_match.accepts(tenant.revision))
    co_return base::Failure{Rejection{RejectionKind::changed_meanwhile}};
  co_return tenant;
}

struct NewStatus {
  TenantStatus status;
  std::optional<std::string> reason;
};

Task<TenantResult> set_status(pg::Link& link, const Caller& caller, TenantId id, NewStatus wanted) {
  if (id == model::kReservedTenant) co_return base::Failure{Rejection{RejectionKind::reserved_tenant}};
  if (caller.is_customer()) co_return base::Failure{Rejection{RejectionKind::operators_only}};
  pg::Transaction transaction = co_await link.begin();
  TenantResult found = co_await load_locked(transaction, caller, id);
  if (!found) co_return std::move(found);

  const bool is_pause = wanted.status == TenantStatus::paused;
  const bool is_same = found->status == wanted.status;
  // Pausing a paused tenant may set another reason.
  const bool says_more = is_pause && wanted.reason && wanted.reason != found->status_reason;
  if (is_same && !says_more) co_return std::move(found);
  pg::Batch batch;
  batch.add(sql::set_tenant_status{.status = model::label(wanted.status),
                                   .actor = model::label(caller.actor),
                                   .reason = wanted.reason,
                                   .id = id});
  if (!is_same && is_pause) batch.add(sql::open_tenant_pause{.tenant = id});
  if (!is_same && !is_pause) batch.add(sql::close_tenant_pause{.tenant = id});
  TenantChange change{caller, id, is_pause ? "tenant.pause" : "tenant.resume", snapshot(*found),
                      std::move(wanted.reason)};
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

}  // namespace

Task<TenantResult> create_tenant(pg::Link& link, const Context& context, const Caller& caller, TenantId id,
                                 TenantSettings settings) {
  if (id == model::kReservedTenant) co_return base::Failure{Rejection{RejectionKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  const auto [inserted, tenant_rows] =
      co_await transaction.run(sql::insert_tenant{.id = id,
                                                  .name = settings.name,
                                                  .max_in_flight = settings.max_in_flight,
                                                  .rate_per_second = settings.rate_per_second,
                                                  .publish_rate_per_second = settings.publish_rate_per_second,
                                                  .payload_bytes_max = settings.payload_bytes_max,
                                                  .endpoints_max = settings.endpoints_max,
                                                  .contacts = json_column(settings.contacts),
                                                  .metadata = json_column(settings.metadata),
                                                  .status_by = model::label(caller.actor),
                                                  .allow_networks = texts_of(settings.allow_networks)},
                               sql::is_deleted_tenant{.id = id});
  if (inserted.empty()) {
    const bool is_deleted = tenant_rows.front().is_deleted;
    co_return base::Failure{
        Rejection{is_deleted ? RejectionKind::tenant_id_used : RejectionKind::tenant_exists}};
  }
  pg::Batch batch;
  const ContactsChange contacts{.before = std::nullopt, .after = settings.contacts};
  TenantChange change{caller, id, "tenant.create"};
  add_contacts(batch, change, context, contacts);
  co_return co_await finish(transaction, std::move(batch), std::move(change));
}

Task<std::optional<Tenant>> find_tenant(pg::Link& link, TenantId id) {
  const auto rows = co_await link.run(sql::load_tenants{.ids = one(id)});
  if (rows.empty()) co_return std::nullopt;
  co_return read_tenant(rows.front());
}

Task<std::vector<Tenant>> list_tenants(pg::Link& link, std::string after, int limit) {
  const auto listed = co_await link.run(sql::list_tenant_ids{.after = after, .limit = limit});
  std::vector<TenantId> ids;
  for (const auto& row : listed) ids.push_back(std::string(row.id));
  const auto rows = co_await link.run(sql::load_tenants{.ids = ids});
  std::vector<Tenant> tenants;
  for (const auto& row : rows) tenants.push_back(read_tenant(row));
  co_return tenants;
}

Task<TenantResult> change_tenant(pg::Link& link, const Context& context, const Caller& caller, TenantId id,
                                 TenantEdit edit) {
  if (id == model::kReservedTenant) co_return base::Failure{Rejection{RejectionKind::reserved_tenant}};
  pg::Transaction transaction = co_await link.begin();
  TenantResult found = co_await load_locked(transaction, caller, id);
  if (!found) co_return std::move(found);
  TenantSettings settings = found->settings;
  if (!edit(settings)) co_return base::Failure{Rejection{RejectionKind::abandoned}};
  if (is_same(found->settings, settings)) co_return std::move(found);
  pg::Batch batch;
  batch.add(sql::update_tenant{.name = settings.name,
                               .max_in_flight = settings.max_in_flight,
                               .rate_per_second = settings.rate_per_second,
                               .publish_rate_per_second = settings.publish_rate_per_second,
                               .payload_bytes_max = settings.payload_bytes_max,
                               .endpoints_max = settings.endpoints_max,
                               .allow_networks = texts_of(settings.allow_networks),
                               .contacts = json_column(settings.contacts),
                               .metadata = json_column(settings.metadata),
                               .id = id});
  const ContactsChange contacts{.before = found->settings.contacts, .after = settings.contacts};
  TenantChange change{caller, id, "tenant.update", snapshot(*found)};
  add_contacts(batch, change, context, contacts);
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

Task<std::optional<Rejection>> delete_tenant(pg::Link& link, const Caller& caller, TenantId id) {
  if (id == model::kReservedTenant) co_return Rejection{RejectionKind::reserved_tenant};
  if (caller.is_customer()) co_return Rejection{RejectionKind::operators_only};
  pg::Transaction transaction = co_await link.begin();
  const TenantResult found = co_await load_locked(transaction, caller, id);
  if (!found) co_return found.error();

  const std::string_view actor = model::label(caller.actor);
  pg::Batch batch;
  batch.add(sql::delete_endpoints_of_tenant{.actor = actor, .tenant = id});
  batch.add(sql::delete_secrets_of_tenant{.tenant = id});
  batch.add(sql::delete_subscriptions_of_tenant{.tenant = id});
  batch.add(sql::close_pauses_of_tenant{.tenant = id});
  batch.add(sql::revoke_keys_of_tenant{.tenant = id});
  batch.add(sql::delete_contacts_of_tenant{.tenant = id});
  batch.add(sql::delete_tenant{.actor = actor, .id = id});
  add_audit(batch, caller,
            {.action = "tenant.delete", .tenant = id, .object = id, .before = snapshot(*found)});
  add_note(batch, ChangeKind::key, id);
  add_note(batch, ChangeKind::tenant, id);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::registry
