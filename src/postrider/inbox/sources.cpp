#include "postrider/inbox/sources.hpp"

#include <utility>

#include "postrider/inbox/source_rows.hpp"
#include "postrider/inbox/source_secrets.hpp"
#include "postrider/inbox/sources.sql.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::inbox {

namespace {

using registry::Refusal;
using registry::RefusalKind;
using runtime::Task;

std::vector<SourceId> one(const SourceId& id) {
  return {id};
}

// Why messages cannot be forwarded so, or nothing.
Task<std::optional<Refusal>> check_forward(pg::Transaction& transaction, const SourceSettings& settings) {
  if (!settings.forward) co_return std::nullopt;
  if (settings.forward->tenant_id == model::kReservedTenant) co_return Refusal{RefusalKind::reserved_tenant};
  pg::Batch batch;
  batch.with(sql::tenant_is_there, settings.forward->tenant_id);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(batch));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_forward_tenant};
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

// A change of one source, as the audit log wants it.
struct SourceChange {
  const registry::Caller& caller;
  const SourceId& id;
  std::string_view action;
  std::optional<registry::Snapshot> before = {};
};

// Makes the change, writes it down with the source as it then is, and commits.
Task<Source> finish(pg::Transaction& transaction, pg::Batch batch, SourceChange change) {
  const size_t loaded = batch.size();
  batch.with(sql::load_sources, one(change.id));
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(batch));
  Source source = std::move(read_sources(answers[loaded]).front());
  pg::Batch last;
  registry::add_audit(last, change.caller,
                      {.action = change.action,
                       .object = change.id,
                       .before = std::move(change.before),
                       .after = snapshot(source)});
  registry::add_note(last, registry::ChangeKind::source);
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(last));
  co_await transaction.commit();
  co_return source;
}

}  // namespace

Task<base::Result<CreatedSource, Refusal>> create_source(pg::Link& link, const registry::Context& context,
                                                         const registry::Caller& caller, NewSource wanted) {
  const auto secret = choose_source_secret(wanted.provider, wanted.settings.signature, wanted.secret);
  if (!secret) co_return base::Failure{secret.error()};
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Refusal> unfit = co_await check_forward(transaction, wanted.settings);
  if (unfit) co_return base::Failure{*unfit};
  pg::Params params(wanted.id, label(wanted.provider));
  add_settings(params, wanted.provider, wanted.settings);
  pg::Batch insert(sql::insert_source, std::move(params));
  const std::vector<pg::Rows> inserted = co_await transaction.run(std::move(insert));
  if (inserted[0].empty()) co_return base::Failure{Refusal{RefusalKind::source_exists}};

  const model::SecretId secret_id{context.ids.next()};
  const std::string sealed = seal_source_secret(context.keys, wanted.id, secret_id, *secret);
  pg::Batch batch;
  batch.with(sql::insert_source_secret, secret_id.uuid, wanted.id, pg::Bytes{sealed});
  SourceChange change{caller, wanted.id, "source.create"};
  Source source = co_await finish(transaction, std::move(batch), std::move(change));
  CreatedSource created{std::move(source), *secret};
  co_return created;
}

Task<std::optional<Refusal>> apply_source(pg::Link& link, const registry::Context& context,
                                          const ConfiguredSource& wanted) {
  registry::Caller caller = registry::Caller::system();
  caller.id = "configuration file";
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Refusal> unfit = co_await check_forward(transaction, wanted.settings);
  if (unfit) co_return unfit;
  pg::Params settings(wanted.id, label(wanted.provider));
  add_settings(settings, wanted.provider, wanted.settings);
  pg::Batch insert(sql::insert_source, std::move(settings));
  insert.with(sql::lock_source, wanted.id)
      .with(sql::load_sources, one(wanted.id))
      .with(sql::load_source_secrets, wanted.id);
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(insert));
  const bool is_new = !found[0].empty();
  const Source source = std::move(read_sources(found[2]).front());
  if (source.provider != wanted.provider)
    co_return Refusal{RefusalKind::source_exists,
                      "already exists with the provider " + std::string(label(source.provider))};

  pg::Batch batch;
  if (source.settings != wanted.settings) {
    pg::Params params(wanted.id);
    add_settings(params, wanted.provider, wanted.settings);
    batch.add(sql::update_source, std::move(params));
  }
  Source after = source;
  after.settings = wanted.settings;
  if (is_new || source.settings != wanted.settings)
    registry::add_audit(
        batch, caller,
        {.action = is_new ? "source.create" : "source.change",
         .object = wanted.id,
         .before = is_new ? std::nullopt : std::optional<registry::Snapshot>(snapshot(source)),
         .after = snapshot(after)});
  set_active_secrets(batch, context, caller, wanted, found[3]);
  if (batch.size() == 0) co_return std::nullopt;
  registry::add_note(batch, registry::ChangeKind::source);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

Task<std::optional<Source>> find_source(pg::Link& link, SourceId id) {
  pg::Params params(one(id));
  const pg::Rows rows = co_await link.run_one(sql::load_sources, std::move(params));
  auto sources = read_sources(rows);
  if (sources.empty()) co_return std::nullopt;
  co_return std::move(sources.front());
}

Task<std::vector<SourceRejections>> list_rejections(pg::Link& link, SourceId id) {
  pg::Params params(id);
  const pg::Rows rows = co_await link.run_one(sql::source_rejections, std::move(params));
  std::vector<SourceRejections> rejections;
  for (size_t row = 0; row < rows.size(); ++row)
    rejections.push_back({rows.get<std::string>(row, 0), rows.get<int64_t>(row, 1),
                          rows.get<base::Timestamp>(row, 2), rows.get<std::string>(row, 3)});
  co_return rejections;
}

Task<std::vector<Source>> list_sources(pg::Link& link, std::string after, int limit) {
  pg::Params page(after, limit);
  const pg::Rows listed = co_await link.run_one(sql::list_source_ids, std::move(page));
  std::vector<SourceId> ids;
  for (size_t row = 0; row < listed.size(); ++row) ids.push_back(listed.get<std::string>(row, 0));
  pg::Params wanted(ids);
  const pg::Rows rows = co_await link.run_one(sql::load_sources, std::move(wanted));
  co_return read_sources(rows);
}

Task<SourceResult> change_source(pg::Link& link, const registry::Caller& caller, SourceId id,
                                 SourceEdit edit) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_source, id).with(sql::load_sources, one(id));
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return base::Failure{Refusal{RefusalKind::unknown_source}};
  Source source = std::move(read_sources(found[1]).front());
  SourceSettings settings = source.settings;
  if (!edit(source.provider, settings)) co_return base::Failure{Refusal{RefusalKind::abandoned}};
  if (settings == source.settings) co_return source;
  const std::optional<Refusal> unfit = co_await check_forward(transaction, settings);
  if (unfit) co_return base::Failure{*unfit};
  pg::Params params(id);
  add_settings(params, source.provider, settings);
  pg::Batch update(sql::update_source, std::move(params));
  SourceChange change{caller, id, "source.change", snapshot(source)};
  co_return co_await finish(transaction, std::move(update), std::move(change));
}

Task<std::optional<Refusal>> delete_source(pg::Link& link, const registry::Caller& caller, SourceId id) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock;
  lock.with(sql::lock_source, id).with(sql::load_sources, one(id));
  const std::vector<pg::Rows> found = co_await transaction.run(std::move(lock));
  if (found[0].empty()) co_return Refusal{RefusalKind::unknown_source};
  pg::Batch batch;
  batch.with(sql::delete_source, id);
  registry::add_audit(
      batch, caller,
      {.action = "source.delete", .object = id, .before = snapshot(read_sources(found[1]).front())});
  registry::add_note(batch, registry::ChangeKind::source);
  const std::vector<pg::Rows> done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return std::nullopt;
}

}  // namespace postrider::inbox
