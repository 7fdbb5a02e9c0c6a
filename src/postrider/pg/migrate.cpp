#include "postrider/pg/migrate.hpp"

#include "postrider/base/check.hpp"

namespace postrider::pg {

namespace {

using runtime::Task;

// Any number will do, as long as it stays: "postride" in hexadecimal.
constexpr const char* lock_sql = "select pg_advisory_lock(x'706f737472696465'::bigint)";
constexpr const char* unlock_sql = "select pg_advisory_unlock(x'706f737472696465'::bigint)";

constexpr const char* foundation_sql = R"sql(
create schema if not exists postrider;
create table if not exists postrider.migration (
  version int primary key,
  name text not null,
  applied_at timestamptz not null default now(),
  postrider_version text not null
);
)sql";

constexpr const char* version_sql = "select coalesce(max(version), 0) from postrider.migration";
constexpr const char* has_table_sql = "select to_regclass('postrider.migration') is not null";

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

std::string script_of(const Migration& migration, const MigrateOptions& options) {
  std::string text = migration.text;
  replace_all(text, "{{buckets}}", std::to_string(options.buckets));
  std::string version = options.postrider_version;
  replace_all(version, "'", "''");
  return "begin;\nset local lock_timeout = " + std::to_string(options.lock_timeout.count()) +
         ";\nset local search_path = postrider;\n" + text +
         "\n;\ninsert into postrider.migration (version, name, postrider_version) values (" +
         std::to_string(migration.version) + ", '" + migration.name + "', '" + version + "');\ncommit;\n";
}

Task<int> schema_version(Connection& connection) {
  const Rows table = co_await connection.execute(has_table_sql);
  if (!table.get<bool>(0, 0)) co_return 0;
  const Rows version = co_await connection.execute(version_sql);
  co_return version.get<int32_t>(0, 0);
}

Task<MigrateReport> migrate_locked(Connection& connection, const MigrateOptions& options) {
  MigrateReport report;
  report.version_before = co_await schema_version(connection);
  report.version = report.version_before;
  refuse_newer_schema(report.version, static_cast<int>(options.migrations.size()));
  if (report.version == 0) co_await connection.script(foundation_sql);
  for (const Migration& migration : options.migrations.subspan(static_cast<size_t>(report.version))) {
    CHECK(migration.version == report.version + 1);
    const std::string text = script_of(migration, options);
    try {
      co_await connection.script(text);
    } catch (const Error& error) {
      throw Error(error.kind(), "migration " + std::to_string(migration.version) + " (" + migration.name +
                                    ") failed and is rolled back: " + error.what());
    }
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

// The lock is the session's; it is gone with the connection, too.
Task<MigrateReport> migrate(Connection& connection, MigrateOptions options) {
  refuse_old_server(connection.server().version);
  co_await connection.execute(lock_sql);
  MigrateReport report;
  std::exception_ptr failure;
  try {
    report = co_await migrate_locked(connection, options);
  } catch (...) {
    failure = std::current_exception();
  }
  if (connection.is_open()) co_await connection.execute(unlock_sql);
  if (failure) std::rethrow_exception(failure);
  co_return report;
}

}  // namespace postrider::pg
