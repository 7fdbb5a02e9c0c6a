// Commands that work with this machine's own settings: what `serve` itself would use.
#include "postrider/cli/commands.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/server/serve.hpp"

namespace postrider::cli {

namespace {

Command with_settings(std::string name, std::string help, int (*run)(const config::Loaded&)) {
  return command(
      std::move(name), std::move(help), {}, [run](Invocation& in) { return run(in.settings()); },
      Needs::settings);
}

}  // namespace

Command serve_command() {
  return with_settings("serve", "Run a node: API, deliveries and maintenance", server::serve)
      .alias("start")
      .example("postrider serve")
      .example("postrider serve --database-url postgresql://postrider@db/postrider --listen 0.0.0.0:8090");
}

Command migrate_command() {
  return command(
             "migrate", "Migrate the database schema and exit",
             {flag("--repair", "Recreate missing tables and views, empty (see docs/recovery.md)")},
             [](Invocation& in) {
               return in.has("--repair") ? repair(in.settings()) : migrate(in.settings());
             },
             Needs::settings)
      .example("postrider migrate --database-url postgresql://postrider@db/postrider");
}

Command database_url_command() {
  return with_settings("database-url", "Print the URL of the database in use, for psql", database_url)
      .example("psql \"$(postrider database-url)\"");
}

Command config_command() {
  return command(
             "config", "Print the effective settings and where they come from",
             {flag("--json", "Print JSON")},
             [](Invocation& in) { return show_config(in.settings(), in.as_json()); }, Needs::settings)
      .example("postrider config");
}

Command version_command() {
  return command(
             "version", "Print the version", {}, [](Invocation&) { return version(); }, Needs::nothing)
      .example("postrider version");
}

}  // namespace postrider::cli
