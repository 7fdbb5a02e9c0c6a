#include "postrider/pg/migrate.hpp"

#include <optional>

#include "postrider/base/check.hpp"
#include "postrider/pg/blockers.hpp"
#include "postrider/pg/migrate.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

void reject_old_server(int version) {
  if (version >= server_version_min) return;
  throw Error(Kind::other, "this is PostgreSQL " + std::to_string(version / 10000) + "; postrider needs " +
                               std::to_string(server_version_min / 10000) + " or later");
}

void reject_incompatible_schema(int version, int oldest_binary, int known) {
  if (known >= oldest_binary) return;
  throw Error(Kind::other, "this database was migrated by a newer postrider (schema version " +
                               std::to_string(version) + ", which needs a postrider that knows version " +
                               std::to_string(oldest_binary) + "; this one knows up to " +
                               std::to_string(known) + "): install that postrider or a later one");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Another node created the same object at the same time, and was first.
bool is_made_by_another(const Error& error) {
  constexpr std::string_view kUniqueViolation = "23505", kDuplicateSchema = "42P06",
                             kDuplicateTable = "42P07", kDuplicateObject = "42710";
  const std::string& state = error.sqlstate();
  return state == kUniqueViolation || state == kDuplicateSchema || state == kDuplicateTable ||
         state == kDuplicateObject;
}

// Creates the schema and the table of migrations if they are missing. Before they exist there is nothing to
// lock: if several nodes create them, one succeeds and the others find them.
Task<void> lay_foundation(Connection& connection) {
  const auto found = co_await connection.run(sql::find_foundation{});
  if (found.front().has_migration) co_return;
  Batch foundation;
  if (!found.front().has_schema) foundation.add(sql::create_schema{});
  foundation.add(sql::create_migration{});
  try {
    co_await connection.run(std::move(foundation));
    co_return;
  } catch (const Error& error) {
    if (!is_made_by_another(error)) throw;
  }
  co_await lay_foundation(connection);
}

// False: another node has applied it meanwhile.
Task<bool> apply(Connection& connection, const Migration& migration, const MigrateOptions& options) {
  std::string text = migration.text;
  replace_all(text, "{{buckets}}", std::to_string(options.buckets));
  const std::string settings = "set local lock_timeout = " + std::to_string(options.lock_timeout.count()) +
                               ";\nset local search_path = postrider;\n";
  Transaction transaction = co_await connection.begin();
  co_await transaction.script(settings);
  const auto [locked, current] = co_await transaction.run(sql::lock_migrations{}, sql::read_version{});
  if (current.front().version >= migration.version) {
    co_await transaction.rollback();
    co_return false;
  }
  co_await transaction.script(text);
  co_await transaction.run(sql::record_migration{.version = migration.version,
                                                 .name = migration.name,
                                                 .postrider_version = options.postrider_version,
                                                 .oldest_binary = migration.oldest_binary});
  co_await transaction.commit();
  co_return true;
}

// Retries while other transactions hold locks that the migration needs, but not forever.
Task<bool> apply_patiently(Connection& connection, const Migration& migration,
                           const MigrateOptions& options) {
  const std::string title = "migration " + std::to_string(migration.version) + " (" + migration.name + ")";
  const auto deadline = base::BootClock::now() + options.patience;
  while (true) {
    std::optional<Error> failure;
    try {
      co_return co_await apply(connection, migration, options);
    } catch (const Error& error) {
      failure = error;
    }
    if (!is_lock_timeout(*failure)) {
      const char* outcome =
          failure->kind() == Kind::unknown ? " was interrupted: " : " failed and is rolled back: ";
      throw Error(failure->kind(), title + outcome + failure->what());
    }
    const std::string holders = co_await lock_holders(connection);
    if (base::BootClock::now() >= deadline)
      throw Error(failure->kind(),
                  title + " could not lock what it needs and is rolled back. Open transactions: " + holders);
    telemetry::log_warn("migration_waits")
        .field("version", migration.version)
        .field("name", migration.name)
        .field("open_transactions", holders);
  }
}

}  // namespace

ConnectOptions migrating(std::string url) {
  ConnectOptions options;
  options.url = std::move(url);
  options.application_name = "postrider migrate";
  options.statement_timeout = options.response_timeout = options.idle_in_transaction_timeout =
      Milliseconds(0);
  return options;
}

Task<MigrateReport> migrate(Connection& connection, MigrateOptions options) {
  reject_old_server(connection.server().version);
  co_await lay_foundation(connection);
  const auto before = co_await connection.run(sql::read_version{});
  MigrateReport report;
  report.version_before = report.version = before.front().version;
  const int known = static_cast<int>(options.migrations.size());
  if (report.version > known) {
    reject_incompatible_schema(report.version, before.front().oldest_binary, known);
    co_return report;
  }
  for (const Migration& migration : options.migrations.subspan(static_cast<size_t>(report.version))) {
    CHECK(migration.version == report.version + 1);
    const bool is_applied = co_await apply_patiently(connection, migration, options);
    report.version = migration.version;
    if (is_applied) report.applied.emplace_back(migration.name);
  }
  co_return report;
}

}  // namespace postrider::pg
