#include <chrono>

#include "postrider/base/time.hpp"
#include "postrider/cli/doctor.hpp"
#include "postrider/cli/doctor.sql.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/pg/blockers.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/private_cluster.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/sql/migrations.hpp"
#include "postrider/upkeep/recipients.hpp"
#include "postrider/upkeep/recipients.sql.hpp"

namespace postrider::cli {

namespace {

struct Interval {
  base::Timestamp from, until;
};

class DatabaseCheck {
 public:
  DatabaseCheck(const config::Config& config, Findings& findings) : config_(config), findings_(findings) {}

  void run() {
    const std::string url =
        config_.database_url.empty() ? pg::PrivateCluster::url_of(config_.data_dir) : config_.database_url;
    runtime::Loop loop;
    try {
      if (config_.database_url.empty())
        add_upgrade(findings_, pg::PrivateCluster::upgrade_of(config_.data_dir));
      runtime::run_blocking(loop, ask(loop, url));
    } catch (const pg::PrivateClusterError& error) {
      findings_.add(Level::problem, "database", error.what(), "Install it, then start `postrider serve`.");
    } catch (const pg::Error& error) {
      const std::string text = error.what();
      findings_.add(
          Level::problem, "database", text.substr(0, text.find('\n')),
          config_.database_url.empty()
              ? "The private Postgres in " + config_.data_dir +
                    " runs only while `postrider serve` runs. Start it."
              : "Check POSTRIDER_DATABASE_URL, and that the server accepts connections from this machine.");
    }
  }

 private:
  using Level = Finding::Level;

  runtime::Task<void> ask(runtime::Loop& loop, std::string url) {
    pg::ConnectOptions options;
    options.url = std::move(url);
    options.application_name = "postrider doctor";
    auto opening = pg::Connection::open(loop, std::move(options));
    const std::unique_ptr<pg::Connection> connection = co_await opening;
    const base::Timestamp before = base::wall_now();
    const sql::server about_it;
    const auto server = co_await connection->run(about_it);
    about_server(server.front(), {before, base::wall_now()});
    if (server.front().has_schema) {
      const sql::schema_version of_schema;
      const auto versions = co_await connection->run(of_schema);
      const int version = versions.front().version;
      about_schema(version);
      const sql::partitions of_days;
      const auto days = co_await connection->run(of_days);
      about_partitions(days.front());
      const sql::leases of_buckets;
      const auto leases = co_await connection->run(of_buckets);
      about_leases(leases.front());
      auto waiting = pg::blocked_sessions(*connection);
      const std::vector<pg::Blocked> blocked = co_await waiting;
      auto holding = pg::lock_holders(*connection);
      const std::string holders = co_await holding;
      about_locks(blocked, holders);
      if (version == static_cast<int>(::postrider::sql::migrations.size())) {
        const upkeep::sql::recipients of_recipients;
        const auto recipients = co_await connection->run(of_recipients);
        about_contacts(recipients.front());
        const sql::capture of_capture;
        const auto capture = co_await connection->run(of_capture);
        about_capture(capture.front());
        auto looking_for_roles = outbox::missing_roles(*connection);
        const outbox::MissingRoles roles = co_await looking_for_roles;
        about_roles(roles);
      }
    }
    connection->close();
  }

  void about_server(const sql::server::Row& row, Interval asked) {
    const int version = row.version;
    if (version < 140000)
      findings_.add(Level::problem, "database", "the server is Postgres " + std::to_string(version / 10000),
                    "Use Postgres 14 or later.");
    else
      findings_.good("database", "connected; Postgres " + std::to_string(version / 10000));
    if (row.is_standby)
      findings_.add(Level::problem, "database", "the server is a read-only standby",
                    "Point POSTRIDER_DATABASE_URL to the primary.");
    if (!row.has_schema)
      findings_.add(Level::problem, "migrations", "the schema has not been created yet",
                    "Run `postrider migrate`, or `postrider serve`.");
    const auto apart = row.clock < asked.from    ? asked.from - row.clock
                       : row.clock > asked.until ? row.clock - asked.until
                                                 : base::Microseconds(0);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(apart).count();
    if (seconds >= 2)
      findings_.add(
          Level::warning, "clock",
          "the clocks of this machine and the database differ by " + std::to_string(seconds) + " s",
          "IDs, due times and signatures use the database's clock, and receivers reject old signatures. Run "
          "NTP on both machines.");
    else
      findings_.good("clock", "this machine and the database agree");
  }

  void about_schema(int version) {
    const int wanted = static_cast<int>(::postrider::sql::migrations.size());
    if (version < wanted)
      findings_.add(Level::problem, "migrations",
                    "the schema is at version " + std::to_string(version) + "; this program needs version " +
                        std::to_string(wanted),
                    "Run `postrider migrate`, or restart `postrider serve`.");
    else if (version > wanted)
      findings_.add(Level::warning, "migrations", "the schema is newer than this program",
                    "Update this program.");
    else
      findings_.good("migrations", "the schema is at version " + std::to_string(version));
  }

  void about_partitions(const sql::partitions::Row& row) {
    if (row.missing > 0)
      findings_.add(Level::problem, "partitions",
                    std::to_string(row.missing) + " partitions for the next days are missing",
                    "A node with the role upkeep creates them. Look for upkeep_failed in its log.");
    else
      findings_.good("partitions", "ready; events since " + std::string(row.oldest_day.value_or("never")));
    if (row.detaching > 0)
      findings_.add(
          Level::warning, "partitions", "a partition is waiting to be detached",
          "A long transaction may block it; see pg_stat_activity. It is tried again in the next pass.");
  }

  // Statements that are blocked at the moment.
  void about_locks(const std::vector<pg::Blocked>& blocked, const std::string& holders) {
    for (const pg::Blocked& each : blocked)
      findings_.add(
          Level::warning, "locks",
          each.service + " is blocked by a transaction of pid " + std::to_string(each.by_pid) + " (role " +
              each.by_role + ")",
          "Commit it, or end it with select pg_terminate_backend(" + std::to_string(each.by_pid) + ").");
    if (blocked.empty())
      findings_.good("locks",
                     "nothing is blocked" + (holders.empty() ? "" : "; open transactions: " + holders));
  }

  void about_leases(const sql::leases::Row& row) {
    const int64_t nodes = row.delivering_nodes, ownerless = row.free_buckets + row.orphaned_buckets;
    if (nodes == 0)
      findings_.add(Level::warning, "leases", "no node is delivering",
                    "Start `postrider serve` with the role delivery.");
    else if (ownerless > 0)
      findings_.add(
          Level::warning, "leases", std::to_string(ownerless) + " buckets have no owner",
          "A node takes them over within lease_seconds. Otherwise look for lease_pass_failed in the logs.");
    else
      findings_.good("leases", nodes == 1 ? "1 node owns all buckets"
                                          : std::to_string(nodes) + " nodes own all buckets");
    if (row.silent_nodes > 0)
      findings_.add(Level::warning, "leases", "a node has not sent a heartbeat for over a minute",
                    "The other nodes take over from it. If there are none, start one.");
  }

  void about_contacts(const upkeep::sql::recipients::Row& row) {
    const int64_t count = row.tenants;
    std::string ids;
    for (const auto& id : row.first_ids) ids += (ids.empty() ? "" : ", ") + std::string(id);
    if (count > 20) ids += " and " + std::to_string(count - 20) + " more";
    if (count > 0)
      findings_.add(Level::warning, "contacts", "tenants without a confirmed contact: " + ids,
                    "They are not notified when an endpoint fails. Add a contact, or confirm one with "
                    "`postrider tenant "
                    "contact confirm TENANT ADDRESS`.");
    else
      findings_.good("contacts", "every tenant has a confirmed contact");
    const upkeep::Recipients others{.has_mail_contact = row.has_mail_contact,
                                    .has_operator = row.has_operator};
    for (const auto& missing : upkeep::missing_recipients(others, !config_.smtp_url.empty()))
      findings_.add(Level::warning, "recipients", missing.what, missing.advice);
    if (!config_.smtp_url.empty() && config_.public_url == "http://" + config_.listen.text())
      findings_.add(Level::warning, "contacts", "links in e-mails point to " + config_.public_url,
                    "Set POSTRIDER_PUBLIC_URL to the URL at which this server is reachable from outside.");
  }

  void about_roles(const outbox::MissingRoles& missing) {
    if (missing.names.empty())
      findings_.good("roles", "all roles that postrider grants exist");
    else
      findings_.add(Level::warning, "roles", "missing: " + missing.listed(),
                    "An administrator can create them, in this database: " + missing.statements);
  }

  std::string capture_advice(std::string_view wal_level) const {
    if (wal_level == "logical")
      return "It needs a role with REPLICATION, a free slot and WAL sender, and a running relay.";
    if (config_.database_url.empty()) return "Set private_capture = true and restart.";
    return "Set wal_level = logical in postgresql.conf and restart Postgres.";
  }

  void about_capture(const sql::capture::Row& row) {
    if (row.lost_at)
      findings_.add(Level::warning, "capture",
                    "a replication slot was lost at " + base::to_rfc3339(*row.lost_at),
                    "Committed events that had not been read from it are lost; see docs/outbox.md.");
    if (!row.is_wanted) return;
    const auto mib = std::to_string(row.retained_bytes >> 20);
    if (row.state == "on")
      findings_.good("capture", "on; the slot retains " + mib + " MiB of log");
    else
      findings_.add(Level::warning, "capture",
                    std::string(row.state) + ": " + std::string(row.reason.value_or("emit() writes rows")),
                    "Meanwhile events are written as rows. " + capture_advice(row.wal_level));
    if (!row.has_server_limit)
      findings_.add(
          Level::warning, "capture", "replication slots may retain any amount of log",
          "Set max_slot_wal_keep_size well above the outbox's limit, to protect the disk while no relay "
          "is running.");
  }

  const config::Config& config_;
  Findings& findings_;
};

}  // namespace

void add_upgrade(Findings& findings, const std::optional<pg::ServerUpgrade>& upgrade) {
  if (!upgrade) return;
  findings.add(Finding::Level::problem, "database",
               "the private Postgres runs version " + upgrade->running + ", but " + upgrade->installed +
                   " is installed",
               "`postrider serve` restarts it within a minute; if it does not, restart postrider.");
}

void check_database(const config::Config& config, Findings& findings) {
  DatabaseCheck(config, findings).run();
}

}  // namespace postrider::cli
