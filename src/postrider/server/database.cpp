#include "postrider/server/database.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "postrider/base/version.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/repair.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/server/known_migrations.hpp"
#include "postrider/server/repair.sql.hpp"
#include "postrider/sql/schema.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::server {
namespace {

constexpr auto kReachTimeout = std::chrono::seconds(60);
constexpr auto kReachPause = std::chrono::seconds(1);
// The role, its password or the database is wrong: waiting does not help.
constexpr std::array<std::string_view, 3> kPermanentErrors{"28000", "28P01", "3D000"};
constexpr std::string_view kNoRight = "42501";

bool is_worth_waiting(const pg::Error& error) {
  return error.kind() == pg::Kind::unavailable && std::find(kPermanentErrors.begin(), kPermanentErrors.end(),
                                                            error.sqlstate()) == kPermanentErrors.end();
}

std::string loss_of(const std::vector<std::string>& tables) {
  std::string names;
  for (const std::string& table : tables) names += (names.empty() ? "" : ", ") + table;
  return "tables of the schema postrider are missing: " + names +
         ". `postrider migrate --repair` creates them again, empty. docs/recovery.md shows how to restore "
         "their rows";
}

runtime::Task<pg::MigrateReport> connect_and_migrate(runtime::Loop& loop, std::string url,
                                                     pg::MigrateOptions options) {
  pg::ConnectOptions connect = pg::migrating(std::move(url));
  auto opening = pg::Connection::open(loop, std::move(connect));
  const std::unique_ptr<pg::Connection> connection = co_await opening;
  auto migrating = pg::migrate(*connection, std::move(options));
  pg::MigrateReport report = co_await migrating;
  auto looking = pg::missing_tables(*connection, postrider::sql::schema_tables);
  const std::vector<std::string> missing = co_await looking;
  auto looking_for_roles = outbox::missing_roles(*connection);
  const outbox::MissingRoles roles = co_await looking_for_roles;
  connection->close();
  if (!roles.names.empty())
    telemetry::log_warn("roles_missing")
        .field("roles", roles.listed())
        .field("detail", "postrider is not allowed to create roles; an administrator can, in this database")
        .field("statements", roles.statements);
  if (!missing.empty()) throw pg::Error(pg::Kind::other, loss_of(missing));
  co_return report;
}

runtime::Task<std::vector<std::string>> connect_and_repair(runtime::Loop& loop, std::string url) {
  pg::ConnectOptions connect = pg::migrating(std::move(url));
  auto opening = pg::Connection::open(loop, std::move(connect));
  const std::unique_ptr<pg::Connection> connection = co_await opening;
  auto repairing = pg::repair(*connection, postrider::sql::schema_statements);
  std::vector<std::string> made = co_await repairing;
  co_await connection->run(sql::grant_all{});
  const auto filled = co_await connection->run(sql::fill_rows{});
  for (const auto& row : filled) made.push_back("rows of postrider." + std::string(row.name));
  connection->close();
  co_return made;
}

pg::MigrateReport migrate_once(const std::string& url, const pg::MigrateOptions& options) {
  runtime::Loop loop;
  return runtime::run_blocking(loop, connect_and_migrate(loop, url, options));
}

}  // namespace

Database::Database(const config::Config& config, std::function<void()> check_stop)
    : url_(config.database_url) {
  if (url_.empty()) {
    cluster_ = std::make_unique<pg::PrivateCluster>(
        pg::PrivateClusterOptions{.data_dir = config.data_dir,
                                  .is_for_capture = config.private_capture,
                                  .check_stop = std::move(check_stop)});
    url_ = cluster_->url();
  }
  direct_url_ = config.direct_database_url.empty() ? url_ : config.direct_database_url;
}

std::string upgrade_note(const std::optional<pg::ServerUpgrade>& upgrade) {
  if (!upgrade) return "";
  return "The private Postgres runs version " + upgrade->running + ", but " + upgrade->installed +
         " is installed. If it is not restarted within a minute, restart postrider.";
}

void Database::keep_alive() {
  if (!cluster_) return;
  try {
    cluster_->revive();
    cluster_->restart_if_upgraded();
  } catch (const pg::PrivateClusterError& error) {
    telemetry::log_error("private_postgres_unavailable").field("error", error.what());
  }
  std::string found = upgrade_note(cluster_->upgrade());
  const std::lock_guard lock(note_->lock);
  note_->text = std::move(found);
}

std::string Database::note() const {
  const std::lock_guard lock(note_->lock);
  return note_->text;
}

void Database::stop() {
  if (cluster_) cluster_->stop();
}

pg::MigrateReport migrate_database(const config::Config& config, const std::string& url) {
  const pg::MigrateOptions options{.migrations = known_migrations(),
                                   .postrider_version = std::string(base::kVersion),
                                   .buckets = config.buckets};
  const auto deadline = std::chrono::steady_clock::now() + kReachTimeout;
  while (true) {
    try {
      return migrate_once(url, options);
    } catch (const pg::Error& error) {
      if (error.sqlstate() == kNoRight)
        throw pg::Error(error.kind(), std::string(error.what()) +
                                          ": the role must own the database, or the schema postrider in it");
      if (!is_worth_waiting(error) || std::chrono::steady_clock::now() > deadline) throw;
      telemetry::log_warn("database_unreachable").field("error", error.what());
      std::this_thread::sleep_for(kReachPause);
    }
  }
}

std::vector<std::string> repair_database(const std::string& url) {
  runtime::Loop loop;
  return runtime::run_blocking(loop, connect_and_repair(loop, url));
}

}  // namespace postrider::server
