#include <unistd.h>

#include <future>

#include "postrider/base/version.hpp"
#include "postrider/cli/commands.hpp"
#include "postrider/cli/database.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/cli/logging.hpp"
#include "postrider/cli/signals.hpp"

namespace postrider::cli {

int serve(const config::Loaded& loaded) {
  const config::Config& config = loaded.config;
  StopSignals signals;
  telemetry::Log log(log_options(config));
  Database database(config);
  const crypto::MasterKeys keys = load_master_keys(config, database.is_private());
  const pg::MigrateReport schema = migrate_database(config, database.url());
  telemetry::log_info("started")
      .field("version", base::kVersion)
      .field("listen", config.listen.text())
      .field("schema", schema.version);
  while (!signals.wait_for(std::chrono::seconds(1))) database.keep_alive();
  database.stop();
  telemetry::log_info("stopped");
  return done;
}

}  // namespace postrider::cli
