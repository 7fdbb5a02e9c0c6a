#include "postrider/registry/api_keys.hpp"

#include <utility>

#include "postrider/registry/api_keys.sql.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/registry/keys.sql.hpp"
#include "postrider/registry/tenants.sql.hpp"

namespace postrider::registry {

namespace {

using runtime::Task;

ApiKey read_key(const pg::Rows& rows, size_t row) {
  using OptionalText = std::optional<std::string>;
  using OptionalTime = std::optional<base::Timestamp>;
  ApiKey key;
  size_t column = 0;
  key.id.uuid = rows.get<base::Uuid>(row, column++);
  key.settings.role = known(parse_role(rows.get<std::string_view>(row, column++)));
  key.settings.tenant = rows.get<OptionalText>(row, column++);
  key.settings.sees_payloads = rows.get<bool>(row, column++);
  key.settings.description = rows.get<OptionalText>(row, column++);
  key.settings.rate_per_second = rows.get<std::optional<double>>(row, column++);
  key.settings.expires_at = rows.get<OptionalTime>(row, column++);
  key.created_at = rows.get<base::Timestamp>(row, column++);
  key.created_by = rows.get<OptionalText>(row, column++);
  key.revoked_at = rows.get<OptionalTime>(row, column++);
  key.last_used_at = rows.get<OptionalTime>(row, column++);
  return key;
}

Snapshot snapshot(const ApiKey& key) {
  Snapshot fields;
  fields.add("role", label(key.settings.role))
      .add("tenant_id", key.settings.tenant)
      .add("payloads", key.settings.sees_payloads)
      .add("description", key.settings.description)
      .add("rate_per_second", key.settings.rate_per_second)
      .add("expires_at", key.settings.expires_at);
  return fields;
}

// Why no such key is made for this caller, or nothing.
Task<std::optional<KeyRefusal>> refuse(pg::Transaction& transaction, const Caller& caller,
                                       const KeySettings& settings) {
  pg::Batch batch;
  batch.with(sql::lock_tenant, settings.tenant.value_or(""));
  const auto maker = model::KeyId::from_outside(caller.id);
  if (maker) batch.with(sql::find_key_expiry, maker->uuid);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(batch));
  if (settings.tenant && found[0].empty()) co_return KeyRefusal::unknown_tenant;
  if (!maker || found[1].empty()) co_return std::nullopt;
  const auto makers_end = found[1].get<std::optional<base::Timestamp>>(0, 0);
  if (makers_end && (!settings.expires_at || *settings.expires_at > *makers_end))
    co_return KeyRefusal::outlives_its_maker;
  co_return std::nullopt;
}

}  // namespace

Task<base::Result<CreatedKey, KeyRefusal>> create_key(pg::Link& link, const Caller& caller,
                                                      KeySettings settings) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<KeyRefusal> refusal = co_await refuse(transaction, caller, settings);
  if (refusal) co_return base::Failure{*refusal};
  CreatedKey created;
  created.text = generate_key();
  created.key.id = make_key_id();
  const KeyHash hash = hash_key(created.text);
  std::optional<std::string> created_by;
  if (caller.kind != ActorKind::system) created_by = caller.id;
  const base::Uuid& id = created.key.id.uuid;
  pg::Batch insert;
  insert
      .with(sql::insert_key, id, pg::Bytes{hash.view()}, label(settings.role), settings.tenant,
            settings.sees_payloads, settings.description, settings.rate_per_second, settings.expires_at,
            created_by)
      .with(sql::load_key, id, std::optional<std::string>());
  const std::vector<pg::Rows> inserted = co_await transaction.run(std::move(insert));
  created.key = read_key(inserted[1], 0);
  pg::Batch last;
  add_audit(last, caller,
            {.action = "key.create",
             .tenant = settings.tenant,
             .object = created.key.id.outside(),
             .after = snapshot(created.key)});
  last.add(sql::note_keys);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return created;
}

Task<KeyResult> find_api_key(pg::Link& link, model::KeyId id, Within within) {
  pg::Params params(id.uuid, within);
  const pg::Rows rows = co_await link.run_one(sql::load_key, std::move(params));
  if (rows.empty()) co_return base::Failure{KeyRefusal::unknown_key};
  co_return read_key(rows, 0);
}

Task<std::vector<ApiKey>> list_keys(pg::Link& link, KeyFilter filter) {
  pg::Params params(filter.after.uuid, filter.limit, filter.within);
  const pg::Rows rows = co_await link.run_one(sql::list_keys, std::move(params));
  std::vector<ApiKey> keys;
  for (size_t row = 0; row < rows.size(); ++row) keys.push_back(read_key(rows, row));
  co_return keys;
}

Task<KeyResult> revoke_key(pg::Link& link, const Caller& caller, model::KeyId id, Within within) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch revoke;
  revoke.with(sql::revoke_key, id.uuid, within).with(sql::load_key, id.uuid, within);
  const std::vector<pg::Rows> revoked = co_await transaction.run(std::move(revoke));
  if (revoked[1].empty()) co_return base::Failure{KeyRefusal::unknown_key};
  ApiKey key = read_key(revoked[1], 0);
  if (revoked[0].empty()) co_return key;
  pg::Batch last;
  add_audit(last, caller,
            {.action = "key.revoke",
             .tenant = key.settings.tenant,
             .object = id.outside(),
             .before = snapshot(key)});
  last.add(sql::note_keys);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return key;
}

}  // namespace postrider::registry
