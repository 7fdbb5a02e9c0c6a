// The only translation unit that knows CLI11: makes a parser from the command table and runs what was chosen.
#include "postrider/cli/cli.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "postrider/base/version.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/help.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/report.hpp"
#include "postrider/server/core_dumps.hpp"

namespace postrider::cli {
namespace {

struct Chosen {
  const Command* command = nullptr;
  Given given;
};

void add_option(CLI::App& app, const Parameter& parameter, Given& given) {
  using Kind = Parameter::Kind;
  CLI::Option* added = nullptr;
  if (parameter.kind == Kind::flag) {
    const auto note = [&given, name = parameter.name](int64_t) { given[name]; };
    app.add_flag_function(parameter.name, note, parameter.help);
    return;
  }
  const auto note = [&given, name = parameter.name](const std::vector<std::string>& values) {
    given[name] = values;
  };
  added = app.add_option_function<std::vector<std::string>>(parameter.name, note, parameter.help);
  added->type_name(parameter.name.starts_with("--") ? parameter.value_name : "");
  const bool takes_more = parameter.kind == Kind::rest || parameter.kind == Kind::several;
  const bool is_many = takes_more || parameter.kind == Kind::list;
  added->allow_extra_args(takes_more);
  if (is_many)
    added->expected(takes_more ? -1 : 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  else
    added->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  if (parameter.kind == Kind::argument) added->required();
  if (!parameter.choices.empty()) added->check(CLI::IsMember(parameter.choices));
}

void add_command(CLI::App& parent, const Command& command, Chosen& chosen) {
  CLI::App* app = parent.add_subcommand(command.name, command.help);
  if (!command.commands.empty()) {
    app->require_subcommand(1);
    for (const Command& below : command.commands) add_command(*app, below, chosen);
    return;
  }
  for (const Parameter& parameter : command.parameters) add_option(*app, parameter, chosen.given);
  app->callback([&chosen, &command] { chosen.command = &command; });
  for (const Parameter& parameter : common_parameters(command.needs)) {
    add_option(*app, parameter, chosen.given);
    app->get_option(parameter.name)->group(command.needs == Needs::server ? "Connection" : "Settings");
  }
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  Chosen chosen;
  for (const Command& command : command_table()) add_command(app, command, chosen);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool asks_first = words.empty() || words[0] == "help";
  const std::vector<std::string> named(words.begin() + (asks_first && !words.empty() ? 1 : 0), words.end());
  if (const auto wrong = wrong_command(command_table(), named)) throw Misuse(*wrong);
  if (asks_first || asks_for_help(words)) {
    std::fputs(help_text(command_table(), named).c_str(), stdout);
    return done;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::string what = wrong_option(command_table(), words).value_or(error.what());
    if (!what.ends_with('.') && !what.ends_with('?')) what += '.';
    throw Misuse(what + " See `" + command_path(command_table(), words) + " --help`.");
  }
  Invocation invocation(std::move(chosen.given), config::process_environment());
  return run_reported(*chosen.command, invocation);
}

}  // namespace

int run(int argc, char** argv) {
  server::forbid_core_dumps();
  try {
    CLI::App app("Delivers webhooks from Postgres: signed, retried, inspectable and replayable.",
                 "postrider");
    app.require_subcommand(1);
    app.set_version_flag("--version", "postrider " + std::string(base::kVersion));
    return parse_and_run(app, argc, argv);
  } catch (const Misuse& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return misused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return failed;
  }
}

}  // namespace postrider::cli
