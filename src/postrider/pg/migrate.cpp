#include "postrider/pg/migrate.hpp"

#include "postrider/base/check.hpp"
#include "postrider/pg/migrate.sql.hpp"

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

// Creates the table of migrations if need be.
Task<int> schema_version(Connection& connection) {
  const Rows found = co_await connection.run_one(sql::find_foundation);
  const bool has_schema = found.get<bool>(0, 0);
  const bool has_migration = found.get<bool>(0, 1);
  if (has_migration) {
    const Rows version = co_await connection.run_one(sql::read_version);
    co_return version.get<int32_t>(0, 0);
  }
  Batch foundation;
  if (!has_schema) foundation.add(sql::create_schema);
  foundation.add(sql::create_migration);
  co_await connection.run(std::move(foundation));
  co_return 0;
}

Task<void> apply(Connection& connection, const Migration& migration, const MigrateOptions& options) {
  std::string text = migration.text;
  replace_all(text, "{{buckets}}", std::to_string(options.buckets));
  const std::string settings = "set local lock_timeout = " + std::to_string(options.lock_timeout.count()) +
                               ";\nset local search_path = postrider;\n";
  Batch record;
  record.with(sql::record_migration, migration.version, migration.name, options.postrider_version);
  try {
    Transaction transaction = co_await connection.begin();
    co_await transaction.script(settings + text);
    co_await transaction.run(std::move(record));
    co_await transaction.commit();
  } catch (const Error& error) {
    const char* outcome =
        error.kind() == Kind::unknown ? ") was interrupted: " : ") failed and is rolled back: ";
    throw Error(error.kind(), "migration " + std::to_string(migration.version) + " (" + migration.name +
                                  outcome + error.what());
  }
}

Task<MigrateReport> migrate_locked(Connection& connection, const MigrateOptions& options) {
  MigrateReport report;
  report.version_before = co_await schema_version(connection);
  report.version = report.version_before;
  refuse_newer_schema(report.version, static_cast<int>(options.migrations.size()));
  for (const Migration& migration : options.migrations.subspan(static_cast<size_t>(report.version))) {
    CHECK(migration.version == report.version + 1);
    co_await apply(connection, migration, options);
    report.version = migration.version;
    report.applied.emplace_back(migration.name);
  }
  co_return report;
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
  co_await connection.run_one(sql::lock);
  MigrateReport report;
  std::exception_ptr failure;
  try {
    report = co_await migrate_locked(connection, options);
  } catch (...) {
    failure = std::current_exception();
  }
  if (connection.is_open()) co_await connection.run_one(sql::unlock);
  if (failure) std::rethrow_exception(failure);
  co_return report;
}

}  // namespace postrider::pg
