#include "postrider/cli/command.hpp"

#include <utility>

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

// Every setting is a flag, except secrets: a command line is there for everybody to see.
std::vector<Parameter> setting_parameters() {
  std::vector<Parameter> all = {option("--config", "FILE", "Settings file, instead of ./postrider.toml")};
  for (const config::Setting& setting : config::settings()) {
    if (setting.secrecy == config::Secrecy::masked) continue;
    std::string help(setting.help);
    const std::string_view shown = setting.default_note.empty() ? setting.default_text : setting.default_note;
    if (!shown.empty()) help += " Default: " + std::string(shown) + ".";
    all.push_back(option(setting.flag_name(), "VALUE", std::move(help)));
  }
  return all;
}

}  // namespace

std::vector<Parameter> common_parameters(Needs needs) {
  switch (needs) {
    case Needs::nothing:
      return {};
    case Needs::settings:
      return setting_parameters();
    case Needs::server:
      return {
          option("--server", "URL",
                 "The server to talk to (POSTRIDER_SERVER). Default: http://127.0.0.1:8090."),
          option("--key", "KEY",
                 "API key (POSTRIDER_KEY). Others on this machine can see it; better a file."),
          option("--key-file", "FILE", "File with the API key (POSTRIDER_KEY_FILE)"),
          option("--profile", "NAME", "A server kept by `postrider profile add` (POSTRIDER_PROFILE)"),
          option("--ca-file", "FILE", "PEM file of authorities to trust beside the system's"),
          flag("--json", "For programs: the server's answer as JSON"),
      };
  }
  return {};
}

}  // namespace postrider::cli
