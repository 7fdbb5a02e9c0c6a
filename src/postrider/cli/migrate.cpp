#include "postrider/pg/migrate.hpp"

#include <cstdio>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/server/database.hpp"
#include "postrider/server/logging.hpp"

namespace postrider::cli {

int repair(const config::Loaded& loaded) {
  telemetry::Log log(server::log_options(loaded.config));
  server::Database database(loaded.config);
  const std::vector<std::string> made = server::repair_database(database.direct_url());
  for (const std::string& each : made) std::printf("%s\n", each.c_str());
  std::printf(made.empty()
                  ? "Nothing is missing.\n"
                  : "Recreated without their rows; docs/recovery.md explains how to recover them.\n");
  database.stop();
  return done;
}

int migrate(const config::Loaded& loaded) {
  telemetry::Log log(server::log_options(loaded.config));
  server::Database database(loaded.config);
  const pg::MigrateReport report = server::migrate_database(loaded.config, database.direct_url());
  database.stop();
  for (const std::string& name : report.applied) std::printf("Applied %s.\n", name.c_str());
  std::printf("The schema is at version %d.\n", report.version);
  return done;
}

}  // namespace postrider::cli
