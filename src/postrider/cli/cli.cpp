// The only translation unit that knows CLI11.
#include "postrider/cli/cli.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "postrider/base/version.hpp"
#include "postrider/cli/commands.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/config/load.hpp"
#include "postrider/config/settings.hpp"

namespace postrider::cli {
namespace {

// What the command line said; the chosen command is run after parsing.
struct CommandLine {
  config::Sources sources;
  bool as_json = false;
  std::function<int()> command;
};

// Every setting is a flag, except secrets: a command line is there for everybody to see.
void add_settings(CLI::App& command, CommandLine& line) {
  command.add_option("--config", line.sources.file, "Settings file, instead of ./postrider.toml")
      ->type_name("FILE");
  for (const config::Setting& setting : config::settings()) {
    if (setting.secrecy == config::Secrecy::masked) continue;
    std::string help(setting.help);
    const std::string_view shown = setting.default_text.empty() ? setting.default_note : setting.default_text;
    if (!shown.empty()) help += " Default: " + std::string(shown) + ".";
    command
        .add_option_function<std::string>(
            setting.flag_name(),
            [&line, key = std::string(setting.key)](const std::string& value) {
              line.sources.flags[key] = value;
            },
            help)
        ->type_name("VALUE")
        ->group("Settings");
  }
}

CLI::App* add_command(CLI::App& app, CommandLine& line, const char* name, const char* help,
                      int (*run)(const config::Loaded&)) {
  CLI::App* command = app.add_subcommand(name, help);
  add_settings(*command, line);
  command->callback(
      [&line, run] { line.command = [&line, run] { return run(config::load(line.sources)); }; });
  return command;
}

void describe(CLI::App& app, CommandLine& line) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "postrider " + std::string(base::kVersion));
  app.footer("Settings come from flags, then POSTRIDER_… variables, then postrider.toml.");

  add_command(app, line, "serve", "Run a node: API, delivery and upkeep", serve);
  add_command(app, line, "migrate", "Bring the database's schema up to date and exit", migrate);
  add_command(app, line, "database-url", "Print the URL of the database in use, for psql", database_url);
  CLI::App* config = app.add_subcommand("config", "Print the effective settings and where they come from");
  add_settings(*config, line);
  config->add_flag("--json", line.as_json, "For programs");
  config->callback(
      [&line] { line.command = [&line] { return show_config(config::load(line.sources), line.as_json); }; });
  app.add_subcommand("version", "Print the version")->callback([&line] { line.command = version; });
}

}  // namespace

int run(int argc, char** argv) {
  CommandLine line;
  line.sources.environment = config::process_environment();
  CLI::App app("Delivers webhooks from Postgres: signed, retried, inspectable and replayable.", "postrider");
  try {
    describe(app, line);
    app.parse(argc, argv);
    return line.command();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? done : misused;
  } catch (const config::ConfigError& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return misused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return failed;
  }
}

}  // namespace postrider::cli
