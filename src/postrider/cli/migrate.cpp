#include "postrider/pg/migrate.hpp"

#include <cstdio>

#include "postrider/cli/commands.hpp"
#include "postrider/cli/database.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/cli/logging.hpp"

namespace postrider::cli {

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
