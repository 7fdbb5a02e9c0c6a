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

ApiKey read_key(const sql::KeyRow& row) {
  ApiKey key;
  key.id.uuid = row.id;
  key.settings.kind = row.is_token ? KeyKind::token : KeyKind::key;
  key.settings.role = known(parse_role(row.role));
  key.settings.is_read_only = row.is_read_only;
  key.settings.tenant = row.tenant_id;
  key.settings.sees_payloads = row.payloads;
  key.settings.description = row.description;
  key.settings.owner = row.owner;
  key.settings.rate_per_second = row.rate_per_second;
  key.settings.expires_at = row.expires_at;
  key.created_at = row.created_at;
  key.created_by = row.created_by;
  key.revoked_at = row.revoked_at;
  key.last_used_at = row.last_used_at;
  return key;
}

Snapshot snapshot(const ApiKey& key) {
  Snapshot fields;
  fields.add("role", label(key.settings.role))
      .add("tenant_id", key.settings.tenant)
      .add("payloads", key.settings.sees_payloads)
      .add("description", key.settings.description)
      .add("owner", key.settings.owner)
      .add("rate_per_second", key.settings.rate_per_second)
      .add("expires_at", key.settings.expires_at);
  if (key.settings.kind == KeyKind::token)
    fields.add("access", key.settings.is_read_only ? "read" : "manage");
  return fields;
}

// The reason why this caller may not create the key, or no value.
Task<std::optional<KeyRejection>> reject(pg::Transaction& transaction, const Caller& caller,
                                         const KeySettings& settings, int live_max) {
  const std::string tenant = settings.tenant.value_or("");
  const auto maker = model::KeyId::from_public_id(caller.id);
  pg::Batch batch;
  const auto locked = batch.add(sql::lock_tenant{.id = tenant});
  const auto counted =
      batch.add(sql::count_keys{.tenant = tenant, .is_token = settings.kind == KeyKind::token});
  const auto expiry = batch.add(sql::find_key_expiry{.id = maker ? maker->uuid : base::Uuid{}});
  pg::Results results = co_await transaction.run(std::move(batch));
  if (settings.tenant && results.take(locked).empty()) co_return KeyRejection::unknown_tenant;
  if (settings.tenant && results.take(counted).front().count >= live_max)
    co_return KeyRejection::too_many_keys;
  const auto makers = results.take(expiry);
  if (makers.empty()) co_return std::nullopt;
  const std::optional<base::Timestamp> makers_end = makers.front().expires_at;
  if (makers_end && (!settings.expires_at || *settings.expires_at > *makers_end))
    co_return KeyRejection::outlives_its_maker;
  co_return std::nullopt;
}

}  // namespace

Task<base::Result<CreatedKey, KeyRejection>> create_key(pg::Link& link, const Caller& caller,
                                                        KeySettings settings, int live_max) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<KeyRejection> rejection = co_await reject(transaction, caller, settings, live_max);
  if (rejection) co_return base::Failure{*rejection};
  CreatedKey created;
  created.text = generate_key();
  created.key.id = make_key_id();
  const KeyHash hash = hash_key(created.text);
  std::optional<std::string> created_by;
  if (caller.kind != ActorKind::system) created_by = caller.id;
  const base::Uuid& id = created.key.id.uuid;
  const bool is_token = settings.kind == KeyKind::token;
  const auto [inserted, key_rows] =
      co_await transaction.run(sql::insert_key{.id = id,
                                               .hash = pg::Bytes(hash.view()),
                                               .is_token = is_token,
                                               .role = label(settings.role),
                                               .is_read_only = settings.is_read_only,
                                               .tenant = settings.tenant,
                                               .payloads = settings.sees_payloads,
                                               .description = settings.description,
                                               .owner = settings.owner,
                                               .rate_per_second = settings.rate_per_second,
                                               .expires_at = settings.expires_at,
                                               .created_by = created_by},
                               sql::load_key{.id = id, .tenant = {}, .is_token = {}});
  created.key = read_key(key_rows.front());
  pg::Batch last;
  add_audit(last, caller,
            {.action = is_token ? "token.create" : "key.create",
             .tenant = settings.tenant,
             .object = created.key.id.public_id(),
             .after = snapshot(created.key)});
  // Tokens are created often. No node can know a new one, so only the removal of old ones comes with it.
  if (is_token)
    last.add(sql::delete_old_tokens{.tenant = *settings.tenant});
  else
    last.add(sql::note_keys{});
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return created;
}

Task<KeyResult> find_api_key(pg::Link& link, model::KeyId id, Within within, std::optional<KeyKind> kind) {
  std::optional<bool> is_token;
  if (kind) is_token = *kind == KeyKind::token;
  const auto rows = co_await link.run(sql::load_key{.id = id.uuid, .tenant = within, .is_token = is_token});
  if (rows.empty()) co_return base::Failure{KeyRejection::unknown_key};
  co_return read_key(rows.front());
}

Task<std::vector<ApiKey>> list_keys(pg::Link& link, KeyFilter filter) {
  const auto rows = co_await link.run(sql::list_keys{.after = filter.after.uuid,
                                                     .tenant = filter.within,
                                                     .is_token = filter.kind == KeyKind::token,
                                                     .limit = filter.limit});
  std::vector<ApiKey> keys;
  for (const auto& row : rows) keys.push_back(read_key(row));
  co_return keys;
}

Task<KeyResult> revoke_key(pg::Link& link, const Caller& caller, model::KeyId id, Within within,
                           KeyKind kind) {
  pg::Transaction transaction = co_await link.begin();
  const bool is_token = kind == KeyKind::token;
  const auto [revoked, key_rows] =
      co_await transaction.run(sql::revoke_key{.id = id.uuid, .tenant = within, .is_token = is_token},
                               sql::load_key{.id = id.uuid, .tenant = within, .is_token = is_token});
  if (key_rows.empty()) co_return base::Failure{KeyRejection::unknown_key};
  ApiKey key = read_key(key_rows.front());
  if (revoked.empty()) co_return key;
  pg::Batch last;
  add_audit(last, caller,
            {.action = is_token ? "token.revoke" : "key.revoke",
             .tenant = key.settings.tenant,
             .object = id.public_id(),
             .before = snapshot(key)});
  last.add(sql::note_keys{});
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return key;
}

}  // namespace postrider::registry
