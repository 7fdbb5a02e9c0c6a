#include "postrider/inbox/sources.hpp"

#include <utility>

#include "postrider/inbox/source_rows.hpp"
#include "postrider/inbox/source_secrets.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::inbox {

namespace {

using registry::RejectionKind;
using runtime::Task;

std::vector<SourceId> one(const SourceId& id) {
  return {id};
}

// The reason why messages cannot be forwarded to this tenant, or no value.
Task<std::optional<registry::Rejection>> check_forward(pg::Transaction& transaction,
                                                       const SourceSettings& settings) {
  if (!settings.forward) co_return std::nullopt;
  if (settings.forward->tenant_id == model::kReservedTenant)
    co_return registry::Rejection{RejectionKind::reserved_tenant};
  const auto found = co_await transaction.run(sql::find_tenant{.id = settings.forward->tenant_id});
  if (found.empty()) co_return registry::Rejection{RejectionKind::unknown_forward_tenant};
  co_return std::nullopt;
}

// As the audit log shows it.
registry::Snapshot snapshot(const Source& source) {
  const SourceSettings& settings = source.settings;
  std::optional<std::string> signature, forward;
  if (source.provider == Provider::hmac) signature = to_json(settings.signature);
  if (settings.forward) {
    base::JsonObject json;
    json.add("tenant_id", settings.forward->tenant_id).add("type", settings.forward->type);
    forward = json.text();
  }
  registry::Snapshot fields;
  fields.add("provider", label(source.provider))
      .add("description", settings.description)
      .raw_or_null("signature", signature)
      .add("tolerance_seconds", settings.tolerance_seconds)
      .add("idempotency_key", settings.idempotency_key)
      .add("deduplicate", label(source.deduplicate()))
      .add("partition_key", settings.partition_key)
      .add("ordering", settings.is_strict ? "strict" : "none")
      .add("headers", settings.headers)
      .add("body_bytes_max", settings.body_bytes_max)
      .add("consume", settings.is_consumed)
      .raw_or_null("forward", forward)
      .add("max_attempts", settings.max_attempts);
  return fields;
}

// A change of one source, for the audit log.
struct SourceChange {
  const registry::Caller& caller;
  const SourceId& id;
  std::string_view action;
  std::optional<registry::Snapshot> before = {};
};

// Runs the batch, records the change with the resulting source, and commits.
Task<Source> finish(pg::Transaction& transaction, pg::Batch batch, SourceChange change) {
  const std::vector<SourceId> ids = one(change.id);
  const auto loaded = batch.add(sql::load_sources{.ids = ids});
  pg::Results results = co_await transaction.run(std::move(batch));
  const auto rows = results.take(loaded);
  Source source = std::move(read_sources(rows).front());
  pg::Batch last;
  registry::add_audit(last, change.caller,
                      {.action = change.action,
                       .object = change.id,
                       .before = std::move(change.before),
                       .after = snapshot(source)});
  registry::add_note(last, registry::ChangeKind::source);
  co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return source;
}

}  // namespace

Task<base::Result<CreatedSource, registry::Rejection>> create_source(pg::Link& link,
                                                                     const registry::Context& context,
                                                                     const registry::Caller& caller,
                                                                     NewSource wanted) {
  const auto secret = choose_source_secret(wanted.provider, wanted.settings.signature, wanted.secret);
  if (!secret) co_return base::Failure{secret.error()};
  pg::Transaction transaction = co_await link.begin();
  const std::optional<registry::Rejection> rejection = co_await check_forward(transaction, wanted.settings);
  if (rejection) co_return base::Failure{*rejection};
  Source draft;
  draft.id = wanted.id;
  draft.provider = wanted.provider;
  draft.settings = wanted.settings;
  const SourceWriter writer(draft);
  const sql::insert_source insert = writer.insert();
  const auto inserted = co_await transaction.run(insert);
  if (inserted.empty()) co_return base::Failure{registry::Rejection{RejectionKind::source_exists}};

  const model::SecretId secret_id{context.ids.next()};
  const std::string sealed = seal_source_secret(context.keys, wanted.id, secret_id, *secret);
  pg::Batch batch;
  batch.add(
      sql::insert_source_secret{.id = secret_id.uuid, .source = wanted.id, .sealed = pg::Bytes{sealed}});
  SourceChange change{caller, wanted.id, "source.create"};
  Source source = co_await finish(transaction, std::move(batch), std::move(change));
  CreatedSource created{std::move(source), *secret};
  co_return created;
}

Task<std::optional<registry::Rejection>> apply_source(pg::Link& link, const registry::Context& context,
                                                      const ConfiguredSource& wanted) {
  registry::Caller caller = registry::Caller::system();
  caller.id = "configuration file";
  pg::Transaction transaction = co_await link.begin();
  const std::optional<registry::Rejection> rejection = co_await check_forward(transaction, wanted.settings);
  if (rejection) co_return rejection;
  Source after;
  after.id = wanted.id;
  after.provider = wanted.provider;
  after.settings = wanted.settings;
  const SourceWriter writer(after);
  const sql::insert_source insert = writer.insert();
  const std::vector<SourceId> ids = one(wanted.id);
  const auto [inserted, locked, rows, secrets] =
      co_await transaction.run(insert, sql::lock_source{.id = wanted.id}, sql::load_sources{.ids = ids},
                               sql::load_source_secrets{.source = wanted.id});
  const bool is_new = !inserted.empty();
  const Source source = std::move(read_sources(rows).front());
  if (source.provider != wanted.provider)
    co_return registry::Rejection{RejectionKind::source_exists,
                                  "already exists with the provider " + std::string(label(source.provider))};

  pg::Batch batch;
  if (source.settings != wanted.settings) batch.add(writer.update());
  if (is_new || source.settings != wanted.settings)
    registry::add_audit(
        batch, caller,
        {.action = is_new ? "source.create" : "source.update",
         .object = wanted.id,
         .before = is_new ? std::nullopt : std::optional<registry::Snapshot>(snapshot(source)),
         .after = snapshot(after)});
  set_active_secrets(batch, context, caller, wanted, secrets);
  if (batch.size() == 0) co_return std::nullopt;
  registry::add_note(batch, registry::ChangeKind::source);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

Task<std::optional<Source>> find_source(pg::Link& link, SourceId id) {
  const std::vector<SourceId> ids = one(id);
  const auto rows = co_await link.run(sql::load_sources{.ids = ids});
  auto sources = read_sources(rows);
  if (sources.empty()) co_return std::nullopt;
  co_return std::move(sources.front());
}

Task<std::vector<SourceRejections>> list_rejections(pg::Link& link, SourceId id) {
  const auto rows = co_await link.run(sql::source_rejections{.source = id});
  std::vector<SourceRejections> rejections;
  for (const auto& row : rows)
    rejections.push_back({std::string(row.reason), row.count, row.last_at, std::string(row.last_detail)});
  co_return rejections;
}

Task<std::vector<Source>> list_sources(pg::Link& link, std::string after, int limit) {
  const auto listed = co_await link.run(sql::list_source_ids{.after = after, .rows = limit});
  std::vector<SourceId> ids;
  for (const auto& row : listed) ids.emplace_back(row.id);
  const auto rows = co_await link.run(sql::load_sources{.ids = ids});
  co_return read_sources(rows);
}

Task<SourceResult> change_source(pg::Link& link, const registry::Caller& caller, SourceId id,
                                 SourceEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  const std::vector<SourceId> ids = one(id);
  const auto [locked, rows] =
      co_await transaction.run(sql::lock_source{.id = id}, sql::load_sources{.ids = ids});
  if (locked.empty()) co_return base::Failure{registry::Rejection{RejectionKind::unknown_source}};
  Source source = std::move(read_sources(rows).front());
  SourceSettings settings = source.settings;
  if (!edit(source.provider, settings))
    co_return base::Failure{registry::Rejection{RejectionKind::abandoned}};
  if (settings == source.settings) co_return source;
  const std::optional<registry::Rejection> rejection = co_await check_forward(transaction, settings);
  if (rejection) co_return base::Failure{*rejection};
  SourceChange change{caller, id, "source.update", snapshot(source)};
  source.settings = std::move(settings);
  pg::Batch update;
  update.add(SourceWriter(source).update());
  co_return co_await finish(transaction, std::move(update), std::move(change));
}

Task<std::optional<registry::Rejection>> delete_source(pg::Link& link, const registry::Caller& caller,
                                                       SourceId id) {
  pg::Transaction transaction = co_await link.begin();
  const std::vector<SourceId> ids = one(id);
  const auto [locked, rows] =
      co_await transaction.run(sql::lock_source{.id = id}, sql::load_sources{.ids = ids});
  if (locked.empty()) co_return registry::Rejection{RejectionKind::unknown_source};
  pg::Batch batch;
  batch.add(sql::delete_source{.id = id});
  registry::add_audit(
      batch, caller,
      {.action = "source.delete", .object = id, .before = snapshot(read_sources(rows).front())});
  registry::add_note(batch, registry::ChangeKind::source);
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::inbox
