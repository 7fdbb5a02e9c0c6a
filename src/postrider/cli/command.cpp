#include "postrider/cli/command.hpp"

#include <algorithm>

#include "postrider/config/settings.hpp"

namespace postrider::cli {

using Kind = Parameter::Kind;

Parameter argument(std::string name, std::string help) {
  return {Kind::argument, std::move(name), std::move(help)};
}

Parameter optional_argument(std::string name, std::string help) {
  return {Kind::optional_argument, std::move(name), std::move(help)};
}

Parameter rest(std::string name, std::string help) {
  return {Kind::rest, std::move(name), std::move(help)};
}

Parameter option(std::string name, std::string value_name, std::string help) {
  return {Kind::option, std::move(name), std::move(help), std::move(value_name)};
}

Parameter choice(std::string name, std::vector<std::string> choices, std::string help) {
  return {Kind::option, std::move(name), std::move(help), "WORD", std::move(choices)};
}

Parameter list_option(std::string name, std::string value_name, std::string help) {
  return {Kind::list, std::move(name), std::move(help), std::move(value_name)};
}

Parameter several_option(std::string name, std::string value_name, std::string help) {
  return {Kind::several, std::move(name), std::move(help), std::move(value_name)};
}

Parameter flag(std::string name, std::string help) {
  return {Kind::flag, std::move(name), std::move(help)};
}

Parameter required(Parameter parameter) {
  parameter.is_required = true;
  return parameter;
}

Parameter with_short(Parameter parameter, std::string short_name) {
  parameter.short_name = std::move(short_name);
  return parameter;
}

Parameter with_field(Parameter parameter, std::string field) {
  parameter.field = std::move(field);
  return parameter;
}

Parameter reason_option() {
  return option("--reason", "TEXT", "Why this is done (recorded in the audit log)");
}

Parameter yes_flag() {
  return with_short(flag("--yes", "Do not ask for confirmation"), "-y");
}

Parameter watch_flag() {
  return with_short(flag("--watch", "Refresh every 2 seconds until interrupted"), "-w");
}

Parameter tenant_option() {
  return option("--tenant", "TENANT", "Only this tenant (default: all tenants)");
}

Parameter json_file_option() {
  return option("--file", "FILE", "Read the fields from a JSON file (- for standard input)");
}

Parameter overlap_option() {
  return option("--overlap", "DURATION",
                "How long the old secret stays valid, such as 1h or 2d (default: 24h)");
}

std::vector<Parameter> period_options() {
  return {option("--since", "TIME", "At or after this time: 1h, 2d, 2026-04-08 or an RFC 3339 timestamp"),
          option("--until", "TIME", "Before this time, in the same form")};
}

std::vector<Parameter> output_options() {
  return {with_short(choice("--output", {"wide", "json", "yaml", "name"},
                            "Output format: more columns, JSON, YAML, or IDs only"),
                     "-o"),
          flag("--json", "Print the API response as JSON (same as -o json)")};
}

Command command(std::string name, std::string help, std::vector<Parameter> parameters,
                std::function<int(Invocation&)> run, Needs needs) {
  Command made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.parameters = std::move(parameters);
  made.run = std::move(run);
  made.needs = needs;
  return made;
}

Command group(std::string name, std::string help, std::vector<Command> commands) {
  Command made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.commands = std::move(commands);
  return made;
}

namespace {

// Names that people know from other tools.
bool is_alias(const Command& command, const std::string& word) {
  if (std::count(command.aliases.begin(), command.aliases.end(), word) > 0) return true;
  if (word == "ls") return command.name == "list";
  if (word == "get") return command.name == "show";
  if (word == "rm") return command.name == "delete" || command.name == "remove" || command.name == "revoke";
  const bool is_plural = command.is_group() &&
                         (word == command.name + "s" || (command.name == "delivery" && word == "deliveries"));
  return is_plural;
}

// Every setting is a flag, except secrets: a command line is visible in the process list.
std::vector<Parameter> setting_parameters() {
  std::vector<Parameter> all = {option("--config", "FILE", "Settings file (default: ./postrider.toml)")};
  for (const config::Setting& setting : config::settings()) {
    if (setting.secrecy == config::Secrecy::masked) continue;
    std::string help(setting.help);
    const std::string_view shown = setting.default_note.empty() ? setting.default_text : setting.default_note;
    if (help.ends_with('.')) help.pop_back();
    if (!shown.empty()) help += " (default: " + std::string(shown) + ")";
    all.push_back(option(setting.flag_name(), "VALUE", std::move(help)));
  }
  return all;
}

}  // namespace

const Command* find_command(const std::vector<Command>& commands, const std::string& word) {
  for (const Command& command : commands)
    if (command.name == word) return &command;
  for (const Command& command : commands)
    if (is_alias(command, word)) return &command;
  return nullptr;
}

std::vector<Parameter> common_parameters(Needs needs) {
  switch (needs) {
    case Needs::nothing:
      return {};
    case Needs::settings:
      return setting_parameters();
    case Needs::server:
      return join(
          output_options(),
          std::vector<Parameter>{
              option("--server", "URL", "Server URL (POSTRIDER_SERVER; default: http://127.0.0.1:8090)"),
              option("--key", "KEY",
                     "API key (POSTRIDER_KEY). Visible in the process list; prefer --key-file"),
              option("--key-file", "FILE",
                     "File with the API key (POSTRIDER_KEY_FILE; - for standard input)"),
              option("--profile", "NAME", "Profile to use, see `postrider profile` (POSTRIDER_PROFILE)"),
              option("--ca-file", "FILE", "PEM file with additional trusted CA certificates"),
          });
  }
  return {};
}

std::vector<Parameter> all_parameters(const Command& command) {
  return join(command.parameters, common_parameters(command.needs));
}

}  // namespace postrider::cli
