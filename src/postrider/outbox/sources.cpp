#include "postrider/outbox/sources.hpp"

#include "postrider/outbox/sources.sql.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

std::string context(const std::string& id) {
  return "outbox_source/" + id;
}

Source read_source(const pg::Rows& rows, size_t row) {
  return {rows.get<std::string>(row, 0), rows.get<std::string>(row, 1),
          std::string(rows.get<pg::Bytes>(row, 2).view), rows.get<base::Timestamp>(row, 3),
          rows.get<base::Timestamp>(row, 4)};
}

// As the audit log shows it. Who puts a URL gives its password anew, so that always counts as changed.
registry::Snapshot snapshot(const Source& source) {
  registry::Snapshot fields;
  fields.add("database_url", source.shown_url).masked("password", R"("***")", source.sealed);
  return fields;
}

// Locks it.
Task<std::optional<Source>> lock_source(pg::Transaction& transaction, const std::string& id) {
  pg::Batch batch;
  batch.with(sql::lock_source, id);
  const auto found = co_await transaction.run(std::move(batch));
  if (found[0].empty()) co_return std::nullopt;
  co_return read_source(found[0], 0);
}

}  // namespace

std::string seal_url(const crypto::MasterKeys& keys, const std::string& id, const std::string& url) {
  return keys.seal(crypto::Purpose::stored_secret, url, context(id));
}

base::Result<std::string, crypto::OpenError> open_url(const crypto::MasterKeys& keys, const Source& source) {
  return keys.open(crypto::Purpose::stored_secret, source.sealed, context(source.id));
}

Task<std::vector<Source>> list_sources(pg::Link& link) {
  const auto rows = co_await link.run_one(sql::list_sources);
  std::vector<Source> sources;
  for (size_t i = 0; i < rows.size(); ++i) sources.push_back(read_source(rows, i));
  co_return sources;
}

Task<std::optional<Source>> find_source(pg::Link& link, std::string id) {
  pg::Params params(id);
  const auto rows = co_await link.run_one(sql::find_source, std::move(params));
  std::optional<Source> found;
  if (!rows.empty()) found = read_source(rows, 0);
  co_return found;
}

Task<bool> put_source(pg::Link& link, const registry::Caller& caller, Source source) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Source> old = co_await lock_source(transaction, source.id);
  registry::AuditEntry entry{
      .action = old ? "outbox.change" : "outbox.create", .object = source.id, .after = snapshot(source)};
  if (old) entry.before = snapshot(*old);
  pg::Batch batch;
  batch.with(sql::put_source, source.id, source.shown_url, pg::Bytes{source.sealed});
  registry::add_audit(batch, caller, std::move(entry));
  const auto done = co_await transaction.run(std::move(batch));
  co_await transaction.commit();
  co_return !old;
}

Task<bool> delete_source(pg::Link& link, const registry::Caller& caller, std::string id) {
  pg::Transaction transaction = co_await link.begin();
  const std::optional<Source> old = co_await lock_source(transaction, id);
  if (!old) co_return false;
  pg::Batch batch;
  batch.with(sql::delete_source, id);
  registry::add_audit(batch, caller, {.action = "outbox.delete", .object = id, .before = snapshot(*old)});
  const auto done = co_await transaction.run(std::move(batch));
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

}  // namespace postrider::outbox
