// `postrider doctor`: checks everything a node depends on; each finding says what to do.
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "postrider/base/time.hpp"
#include "postrider/cli/doctor.sql.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/outbox/install.hpp"
#include "postrider/pg/blockers.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/private_cluster.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/sql/migrations.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

struct Finding {
  enum class Level { ok, warning, problem };
  Level level;
  std::string about, what, advice;
};

std::string_view label(Finding::Level level) {
  switch (level) {
    case Finding::Level::ok:
      return "ok";
    case Finding::Level::warning:
      return "warning";
    case Finding::Level::problem:
      return "problem";
  }
  return "";
}

class Doctor {
 public:
  explicit Doctor(const config::Config& config) : config_(config) {}

  std::vector<Finding> examine(const std::optional<std::string>& url) {
    database();
    disk();
    trust_store();
    if (url)
      egress(*url);
    else
      good("egress", "not checked; check a destination with --url https://…");
    return std::move(findings_);
  }

 private:
  using Level = Finding::Level;
  void good(std::string about, std::string what) { add(Level::ok, std::move(about), std::move(what), ""); }
  void add(Level level, std::string about, std::string what, std::string advice) {
    findings_.push_back({level, std::move(about), std::move(what), std::move(advice)});
  }

  void database() {
    const std::string url =
        config_.database_url.empty() ? pg::PrivateCluster::url_of(config_.data_dir) : config_.database_url;
    runtime::Loop loop;
    try {
      if (config_.database_url.empty()) about_upgrade(pg::PrivateCluster::upgrade_of(config_.data_dir));
      runtime::run_blocking(loop, ask(loop, url));
    } catch (const pg::PrivateClusterError& error) {
      add(Level::problem, "database", error.what(), "Install it, then start `postrider serve`.");
    } catch (const pg::Error& error) {
      const std::string said = error.what();
      add(Level::problem, "database", said.substr(0, said.find('\n')),
          config_.database_url.empty()
              ? "The private Postgres in " + config_.data_dir +
                    " runs only while `postrider serve` runs. Start it."
              : "Check POSTRIDER_DATABASE_URL, and that the server accepts connections from this machine.");
    }
  }

  runtime::Task<void> ask(runtime::Loop& loop, std::string url) {
    pg::ConnectOptions options;
    options.url = std::move(url);
    options.application_name = "postrider doctor";
    auto opening = pg::Connection::open(loop, std::move(options));
    const std::unique_ptr<pg::Connection> connection = co_await opening;
    const base::Timestamp before = base::wall_now();
    const pg::Rows server = co_await connection->run_one(sql::server);
    about_server(server, before, base::wall_now());
    if (server.get<bool>(0, 0)) {
      const pg::Rows version = co_await connection->run_one(sql::schema_version);
      about_schema(version.get<int32_t>(0, 0));
      const pg::Rows days = co_await connection->run_one(sql::partitions);
      about_partitions(days);
      const pg::Rows leases = co_await connection->run_one(sql::leases);
      about_leases(leases);
      auto waiting = pg::blocked_sessions(*connection);
      const std::vector<pg::Blocked> blocked = co_await waiting;
      auto holding = pg::lock_holders(*connection);
      const std::string holders = co_await holding;
      about_locks(blocked, holders);
      if (version.get<int32_t>(0, 0) == static_cast<int>(::postrider::sql::migrations.size())) {
        const pg::Rows untold = co_await connection->run_one(sql::tenants_without_contact);
        about_contacts(untold);
        const pg::Rows capture = co_await connection->run_one(sql::capture);
        about_capture(capture);
        auto looking_for_roles = outbox::missing_roles(*connection);
        const outbox::MissingRoles roles = co_await looking_for_roles;
        about_roles(roles);
      }
    }
    connection->close();
  }

  void about_server(const pg::Rows& row, base::Timestamp before, base::Timestamp after) {
    const int version = row.get<int32_t>(0, 1);
    if (version < 140000)
      add(Level::problem, "database", "the server is Postgres " + std::to_string(version / 10000),
          "Use Postgres 14 or later.");
    else
      good("database", "connected; Postgres " + std::to_string(version / 10000));
    if (row.get<bool>(0, 3))
      add(Level::problem, "database", "the server is a read-only standby",
          "Point POSTRIDER_DATABASE_URL to the primary.");
    if (!row.get<bool>(0, 0))
      add(Level::problem, "migrations", "the schema has not been created yet",
          "Run `postrider migrate`, or `postrider serve`.");
    const auto theirs = row.get<base::Timestamp>(0, 2);
    const auto apart = theirs < before  ? before - theirs
                       : theirs > after ? theirs - after
                                        : base::Microseconds(0);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(apart).count();
    if (seconds >= 2)
      add(Level::warning, "clock",
          "the clocks of this machine and the database differ by " + std::to_string(seconds) + " s",
          "IDs, due times and signatures use the database's clock, and receivers reject old signatures. Run "
          "NTP "
          "on both machines.");
    else
      good("clock", "this machine and the database agree");
  }

  void about_schema(int version) {
    const int wanted = static_cast<int>(::postrider::sql::migrations.size());
    if (version < wanted)
      add(Level::problem, "migrations",
          "the schema is at version " + std::to_string(version) + "; this program needs version " +
              std::to_string(wanted),
          "Run `postrider migrate`, or restart `postrider serve`.");
    else if (version > wanted)
      add(Level::warning, "migrations", "the schema is newer than this program", "Update this program.");
    else
      good("migrations", "the schema is at version " + std::to_string(version));
  }

  void about_partitions(const pg::Rows& row) {
    const auto missing = row.get<int64_t>(0, 0);
    if (missing > 0)
      add(Level::problem, "partitions", std::to_string(missing) + " partitions for the next days are missing",
          "A node with the role upkeep creates them. Look for upkeep_failed in its log.");
    else
      good("partitions",
           "ready; events since " + row.get<std::optional<std::string>>(0, 1).value_or("never"));
    if (row.get<int64_t>(0, 2) > 0)
      add(Level::warning, "partitions", "a partition is waiting to be detached",
          "A long transaction may block it; see pg_stat_activity. It is tried again in the next pass.");
  }

  // What is blocked at this moment.
  void about_locks(const std::vector<pg::Blocked>& blocked, const std::string& holders) {
    for (const pg::Blocked& each : blocked)
      add(Level::warning, "locks",
          each.service + " is blocked by a transaction of pid " + std::to_string(each.by_pid) + " (role " +
              each.by_role + ")",
          "Commit it, or end it with select pg_terminate_backend(" + std::to_string(each.by_pid) + ").");
    if (blocked.empty())
      good("locks", "nothing is blocked" + (holders.empty() ? "" : "; open transactions: " + holders));
  }

  void about_leases(const pg::Rows& row) {
    const auto free = row.get<int64_t>(0, 0), dead = row.get<int64_t>(0, 1), nodes = row.get<int64_t>(0, 2);
    if (nodes == 0)
      add(Level::warning, "leases", "no node is delivering",
          "Start `postrider serve` with the role delivery.");
    else if (free + dead > 0)
      add(Level::warning, "leases", std::to_string(free + dead) + " buckets have no owner",
          "A node takes them over within lease_seconds. Otherwise look for lease_pass_failed in the logs.");
    else
      good("leases",
           nodes == 1 ? "1 node owns all buckets" : std::to_string(nodes) + " nodes own all buckets");
    if (row.get<int64_t>(0, 3) > 0)
      add(Level::warning, "leases", "a node has not sent a heartbeat for over a minute",
          "The other nodes take over from it. If there are none, start one.");
  }

  void about_contacts(const pg::Rows& row) {
    const auto count = row.get<int64_t>(0, 0);
    std::string ids;
    for (const std::string& id : row.get<std::vector<std::string>>(0, 1))
      ids += (ids.empty() ? "" : ", ") + id;
    if (count > 20) ids += " and " + std::to_string(count - 20) + " more";
    if (count > 0)
      add(Level::warning, "contacts", "tenants without a confirmed contact: " + ids,
          "They are not notified when an endpoint fails. Add a contact, or confirm one with `postrider "
          "tenant "
          "contact confirm TENANT ADDRESS`.");
    else
      good("contacts", "every tenant has a confirmed contact");
    if (!config_.smtp_url.empty() && config_.public_url == "http://" + config_.listen.text())
      add(Level::warning, "contacts", "links in e-mails point to " + config_.public_url,
          "Set POSTRIDER_PUBLIC_URL to the URL at which this server is reachable from outside.");
  }

  void about_upgrade(const std::optional<pg::ServerUpgrade>& upgrade) {
    if (upgrade)
      add(Level::problem, "database",
          "the private Postgres runs version " + upgrade->running + ", but " + upgrade->installed +
              " is installed",
          "`postrider serve` restarts it within a minute; if it does not, restart postrider.");
  }

  void about_roles(const outbox::MissingRoles& missing) {
    if (missing.names.empty())
      good("roles", "all roles that postrider grants exist");
    else
      add(Level::warning, "roles", "missing: " + missing.listed(),
          "An administrator can create them, in this database: " + missing.statements);
  }

  std::string capture_advice(const std::string& wal_level) const {
    if (wal_level == "logical")
      return "It needs a role with REPLICATION, a free slot and WAL sender, and a running relay.";
    if (config_.database_url.empty()) return "Set private_capture = true and restart.";
    return "Set wal_level = logical in postgresql.conf and restart Postgres.";
  }

  void about_capture(const pg::Rows& row) {
    if (const auto lost_at = row.get<std::optional<base::Timestamp>>(0, 5))
      add(Level::warning, "capture", "a replication slot was lost at " + base::to_rfc3339(*lost_at),
          "Committed events that had not been read from it are lost; see docs/outbox.md.");
    if (!row.get<bool>(0, 0)) return;
    const auto state = row.get<std::string>(0, 1);
    const auto mib = std::to_string(row.get<int64_t>(0, 3) >> 20);
    if (state == "on")
      good("capture", "on; the slot retains " + mib + " MiB of log");
    else
      add(Level::warning, "capture",
          state + ": " + row.get<std::optional<std::string>>(0, 2).value_or("emit() writes rows"),
          "Meanwhile events are written as rows. " + capture_advice(row.get<std::string>(0, 7)));
    if (!row.get<bool>(0, 6))
      add(Level::warning, "capture", "replication slots may retain any amount of log",
          "Set max_slot_wal_keep_size well above the outbox's limit, to protect the disk while no relay "
          "is running.");
  }

  void disk() {
    for (const std::string& directory : {config_.data_dir, config_.archive_dir}) {
      if (directory.empty()) continue;
      std::error_code error;
      if (!std::filesystem::exists(directory, error)) {
        const bool is_needed = directory == config_.archive_dir;
        if (is_needed)
          add(Level::problem, "disk", directory + " does not exist",
              "Create it: data is kept until it can be archived.");
        continue;
      }
      struct statvfs info{};
      if (::statvfs(directory.c_str(), &info) != 0) continue;
      const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / (1 << 30);
      const double share =
          info.f_blocks == 0 ? 1 : static_cast<double>(info.f_bavail) / static_cast<double>(info.f_blocks);
      char text[128];
      std::snprintf(text, sizeof text, "%.1f GiB free (%.0f %%) in ", free, share * 100);
      if (free < 1 || share < 0.05)
        add(Level::problem, "disk", text + directory, "Free up space: Postgres stops when the disk is full.");
      else
        good("disk", text + directory);
    }
  }

  void trust_store() {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    int count = 0;
    if (context != nullptr) {
      SSL_CTX_set_default_verify_paths(context);
      STACK_OF(X509_OBJECT)* found = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
      count = found == nullptr ? 0 : sk_X509_OBJECT_num(found);
      SSL_CTX_free(context);
    }
    try {
      http::TlsContext tls({.extra_ca_file = config_.extra_ca_file});
    } catch (const std::exception& error) {
      add(Level::problem, "tls store", error.what(), "Check POSTRIDER_EXTRA_CA_FILE.");
    }
    if (count == 0)
      add(Level::problem, "tls store", "no trusted CA certificates: every https delivery would fail",
          "Install ca-certificates.");
    else
      good("tls store", std::to_string(count) + " trusted CA certificates");
  }

  static std::string guard_advice(http::BlockedReason reason) {
    switch (reason) {
      case http::BlockedReason::plain_http:
        return "Blocked by the outbound URL policy. Set POSTRIDER_ALLOW_HTTP=true to allow http://.";
      case http::BlockedReason::port:
        return "Blocked by the outbound URL policy. POSTRIDER_ALLOW_PORTS lists the allowed ports.";
      default:
        return "Blocked by the outbound URL policy. POSTRIDER_ALLOW_NETWORKS allows private networks.";
    }
  }

  static std::string network_advice(http::NetError error) {
    using enum http::NetError;
    switch (error) {
      case name_not_found:
        return "Check the spelling of the host name.";
      case name_lookup_failed:
      case timeout_lookup:
        return "Check /etc/resolv.conf and the name servers.";
      case tls_expired:
        return "The receiver must renew its certificate.";
      case tls_wrong_host:
        return "The receiver's certificate is for another host name: check the URL, or the receiver's "
               "certificate.";
      case tls_untrusted:
        return "If the receiver uses a private CA, add its certificate with POSTRIDER_EXTRA_CA_FILE.";
      case tls_failed:
      case timeout_tls:
        return "Check that the receiver speaks TLS 1.2 or later at this port.";
      case connection_refused:
        return "Nothing accepts connections there: check host, port and whether the receiver is running.";
      case unreachable:
      case timeout_connect:
        return "Check the firewall's rules for outgoing connections, and the route.";
      case local_failure:
        return "Check POSTRIDER_BIND_ADDRESS and the limit of open files on this machine.";
      default:
        return "The connection works; check the receiver.";
    }
  }

  // The path of a delivery: name, policy, connection, TLS.
  void egress(const std::string& text) {
    const auto url = http::parse_url(text);
    if (!url) {
      add(Level::problem, "egress", "\"" + text + "\" is not a valid URL",
          "Give a URL such as https://example.com/.");
      return;
    }
    http::GuardPolicy policy;
    policy.allow_http = config_.allow_http;
    for (const config::Network& network : config_.allow_networks)
      policy.allow_networks.push_back(*http::Network::parse(network.text()));
    policy.allow_ports.clear();
    for (const config::PortRange& range : config_.allow_ports)
      policy.allow_ports.push_back({static_cast<uint16_t>(range.first), static_cast<uint16_t>(range.last)});
    const http::AddressGuard guard(policy);
    const http::TlsContext tls({.extra_ca_file = config_.extra_ca_file});
    runtime::Loop loop;
    http::Client client(loop, guard, tls, {});
    http::OutboundRequest request{.url = *url};
    request.method = "HEAD";
    request.deadline = base::BootClock::now() + 10s;
    const http::Exchange exchange = runtime::run_blocking(loop, client.send(request));
    client.close();
    if (const http::NetFailure* failure = exchange.failure()) {
      const std::string what =
          failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail;
      const bool is_name = failure->error == http::NetError::name_not_found;
      add(Level::problem, is_name ? "names" : "egress", text + ": " + what,
          failure->blocked_reason ? guard_advice(*failure->blocked_reason) : network_advice(failure->error));
      return;
    }
    good("names", std::string(url->host()) + " was resolved");
    good("egress", text + " responded with " + std::to_string(exchange.answer()->status));
  }

  const config::Config& config_;
  std::vector<Finding> findings_;
};

int doctor(Invocation& in) {
  const config::Loaded loaded = in.settings();
  const std::vector<Finding> findings = Doctor(loaded.config).examine(in.value("--url"));
  bool is_well = true;
  json::array rows;
  for (const Finding& finding : findings) {
    is_well = is_well && finding.level != Finding::Level::problem;
    rows.push_back(json::object{{"status", label(finding.level)},
                                {"about", finding.about},
                                {"finding", finding.what},
                                {"advice", finding.advice}});
    if (!in.out().is_for_people()) continue;
    in.out().line(std::string(label(finding.level)) + "  " + finding.about + ": " + visible(finding.what));
    if (!finding.advice.empty()) in.out().line("    → " + visible(finding.advice));
  }
  if (!in.out().is_for_people()) in.out().json(rows);
  return is_well ? done : failed;
}

}  // namespace

Command doctor_command() {
  return command("doctor", "Check database, clock, disk, TLS, partitions and leases, with advice",
                 join({option("--url", "URL", "Also check whether deliveries can reach this URL")},
                      output_options()),
                 doctor, Needs::settings)
      .example("postrider doctor")
      .example("postrider doctor --url https://example.com/hooks");
}

}  // namespace postrider::cli
