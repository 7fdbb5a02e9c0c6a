#include "postrider/pg/migrate.hpp"

#include <cstdio>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/database.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/cli/logging.hpp"

namespace postrider::cli {

int repair(const config::Loaded& loaded) {
  telemetry::Log log(log_options(loaded.config));
  Database database(loaded.config);
  const std::vector<std::string> made = repair_database(database.direct_url());
  for (const std::string& each : made) std::printf("%s\n", each.c_str());
  std::printf(made.empty() ? "nothing is missing\n"
                           : "made again, empty; docs/recovery.md says how to fill them\n");
  database.stop();
  return done;
}

int migrate(const config::Loaded& loaded) {
  telemetry::Log log(log_options(loaded.config));
  Database database(loaded.config);
  const pg::MigrateReport report = migrate_database(loaded.config, database.direct_url());
  database.stop();
  for (const std::string& name : report.applied) std::printf("applied %s\n", name.c_str());
  std::printf("the schema is at version %d\n", report.version);
  return done;
}

}  // namespace postrider::cli
