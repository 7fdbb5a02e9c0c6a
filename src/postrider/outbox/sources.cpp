#include "postrider/outbox/sources.hpp"

#include "postrider/outbox/sources.sql.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

std::string context(const std::string& id) {
  return "outbox_database/" + id;
}

Source read_source(const sql::SourceRow& row) {
  return {std::string(row.id), std::string(row.display_url), std::string(row.database_url_sealed.view),
          row.created_at, row.updated_at};
}

// As the audit log shows it. A new URL always has its password, so the password always counts as changed.
registry::Snapshot snapshot(const Source& source) {
  registry::Snapshot fields;
  fields.add("database_url", source.display_url).masked("password", R"("***")", source.sealed);
  return fields;
}

// Locks it.
Task<std::optional<Source>> lock_source(pg::Transaction& transaction, const std::string& id) {
  const auto rows = co_await transaction.run(sql::lock_source{.id = id});
  if (rows.empty()) co_return std::nullopt;
  co_return read_source(rows.front());
}

}  // namespace

std::string seal_url(const crypto::MasterKeys& keys, const std::string& id, const std::string& url) {
  return keys.seal(crypto::Purpose::stored_secret, url, context(id));
}

base::Result<std::string, crypto::OpenError> open_url(const crypto::MasterKeys& keys, const Source& source) {
  return keys.open(crypto::Purpose::stored_secret, source.sealed, context(source.id));
}

Task<std::vector<Source>> list_sources(pg::Link& link) {
  const auto rows = co_await link.run(sql::list_sources{});
  std::vector<Source> sources;
  for (const auto& row : rows) sources.push_back(read_source(row));
  co_return sources;
}

Task<std::optional<Source>> find_source(pg::Link& link, std::string id) {
  const auto rows = co_await link.run(sql::find_source{.id = id});
  std::optional<Source> found;
  if (!rows.empty()) found = read_source(rows.front());
  co_return found;
}

Task<bool> put_source(pg::Link& link, const registry::Caller& caller, Source source) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Source> old = co_await lock_source(transaction, source.id);
  registry::AuditEntry entry{
      .action = old ? "outbox.update" : "outbox.create", .object = source.id, .after = snapshot(source)};
  if (old) entry.before = snapshot(*old);
  pg::Batch batch;
  batch.add(sql::put_source{
      .id = source.id, .display_url = source.display_url, .sealed = pg::Bytes{source.sealed}});
  registry::add_audit(batch, caller, std::move(entry));
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return !old;
}

Task<bool> delete_source(pg::Link& link, const registry::Caller& caller, std::string id) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Source> old = co_await lock_source(transaction, id);
  if (!old) co_return false;
  pg::Batch batch;
  batch.add(sql::delete_source{.id = id});
  registry::add_audit(batch, caller, {.action = "outbox.delete", .object = id, .before = snapshot(*old)});
  co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return true;
}

pg::Batch stuck_note(const registry::Caller& caller, const std::string& id, StuckChange change) {
  const auto& rows = change.rows;
  std::vector<std::string> shown;
  if (rows)
    for (const int64_t row : *rows) shown.push_back(std::to_string(row));
  registry::Snapshot after;
  if (rows)
    after.add("rows", shown);
  else
    after.add("rows", "all");
  pg::Batch batch;
  registry::add_audit(
      batch, caller,
      {.action = change.action, .object = id, .after = std::move(after), .reason = std::move(change.reason)});
  return batch;
}

pg::Batch on_invalid_note(const registry::Caller& caller, const std::string& id,
                          const std::string& on_invalid) {
  registry::Snapshot after;
  after.add("on_invalid", on_invalid);
  pg::Batch batch;
  registry::add_audit(batch, caller, {.action = "outbox.update", .object = id, .after = std::move(after)});
  return batch;
}

}  // namespace postrider::outbox
