#include "postrider/pg/migrate.hpp"

#include <optional>

#include "postrider/base/check.hpp"
#include "postrider/pg/blockers.hpp"
#include "postrider/pg/migrate.sql.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

void refuse_old_server(int version) {
  if (version >= server_version_min) return;
  throw Error(Kind::other, "this is PostgreSQL " + std::to_string(version / 10000) + "; postrider needs " +
                               std::to_string(server_version_min / 10000) + " or later");
}

void refuse_newer_schema(int version, int known) {
  if (version <= known) return;
  throw Error(Kind::other, "this database was migrated by a newer postrider (version " +
                               std::to_string(version) + ", this binary knows up to " +
                               std::to_string(known) + "): install that postrider or a later one");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Another node was creating the same at the same time, and was first.
bool is_made_by_another(const Error& error) {
  constexpr std::string_view kUniqueViolation = "23505", kDuplicateSchema = "42P06",
                             kDuplicateTable = "42P07", kDuplicateObject = "42710";
  const std::string& state = error.sqlstate();
  return state == kUniqueViolation || state == kDuplicateSchema || state == kDuplicateTable ||
         state == kDuplicateObject;
}

// Creates the schema and the table of migrations if they are missing. Before they exist there is nothing to
// lock: of several nodes that create them, one succeeds and the others find them there.
Task<void> lay_foundation(Connection& connection) {
  const Rows found = co_await connection.run_one(sql::find_foundation);
  const bool has_schema = found.get<bool>(0, 0);
  const bool has_migration = found.get<bool>(0, 1);
  if (has_migration) co_return;
  Batch foundation;
  if (!has_schema) foundation.add(sql::create_schema);
  foundation.add(sql::create_migration);
  try {
    co_await connection.run(std::move(foundation));
    co_return;
  } catch (const Error& error) {
    if (!is_made_by_another(error)) throw;
  }
  auto again = lay_foundation(connection);
  co_await again;
}

// False: another node has applied it meanwhile.
Task<bool> apply(Connection& connection, const Migration& migration, const MigrateOptions& options) {
  std::string text = migration.text;
  replace_all(text, "{{buckets}}", std::to_string(options.buckets));
  const std::string settings = "set local lock_timeout = " + std::to_string(options.lock_timeout.count()) +
                               ";\nset local search_path = postrider;\n";
  Batch turn, record;
  turn.add(sql::lock).add(sql::read_version);
  record.with(sql::record_migration, migration.version, migration.name, options.postrider_version);
  Transaction transaction = co_await connection.begin();
  co_await transaction.script(settings);
  const auto answers = co_await transaction.run(std::move(turn));
  if (answers[1].get<int32_t>(0, 0) >= migration.version) {
    co_await transaction.rollback();
    co_return false;
  }
  co_await transaction.script(text);
  co_await transaction.run(std::move(record));
  co_await transaction.commit();
  co_return true;
}

// Again for as long as other transactions hold locks that the migration needs, but not for ever.
Task<bool> apply_patiently(Connection& connection, const Migration& migration,
                           const MigrateOptions& options) {
  const std::string title = "migration " + std::to_string(migration.version) + " (" + migration.name + ")";
  const auto deadline = base::BootClock::now() + options.patience;
  while (true) {
    std::optional<Error> failure;
    try {
      auto applying = apply(connection, migration, options);
      const bool is_applied = co_await applying;
      co_return is_applied;
    } catch (const Error& error) {
      failure = error;
    }
    if (!is_lock_timeout(*failure)) {
      const char* outcome =
          failure->kind() == Kind::unknown ? " was interrupted: " : " failed and is rolled back: ";
      throw Error(failure->kind(), title + outcome + failure->what());
    }
    auto asking = lock_holders(connection);
    const std::string holders = co_await asking;
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
  refuse_old_server(connection.server().version);
  auto founding = lay_foundation(connection);
  co_await founding;
  const Rows before = co_await connection.run_one(sql::read_version);
  MigrateReport report;
  report.version_before = report.version = before.get<int32_t>(0, 0);
  refuse_newer_schema(report.version, static_cast<int>(options.migrations.size()));
  for (const Migration& migration : options.migrations.subspan(static_cast<size_t>(report.version))) {
    CHECK(migration.version == report.version + 1);
    auto applying = apply_patiently(connection, migration, options);
    const bool is_applied = co_await applying;
    report.version = migration.version;
    if (is_applied) report.applied.emplace_back(migration.name);
  }
  co_return report;
}

}  // namespace postrider::pg
