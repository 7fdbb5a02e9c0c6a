// The commands, as a table: every group is a file that returns its commands. The parser, the help pages and
// shell completion all read this table, so a command exists in all of them or in none.
//
//   Command tenant_commands() {
//     return group("tenant", "Manage tenants and their limits",
//                  {command("show", "Show a tenant", {argument("tenant", "Tenant ID")}, show)
//                       .example("postrider tenant show acme")});
//   }
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace postrider::cli {

class Invocation;

struct Parameter {
  enum class Kind {
    argument,           // required, by position
    optional_argument,  // optional, after the required ones
    rest,               // any number, after the others
    option,             // --name VALUE, once
    list,               // --name VALUE, any number of times
    several,            // --name VALUE…, as a shell pattern expands
    flag,               // --name
  };
  Kind kind = Kind::argument;
  std::string name;  // "tenant", "--limit"
  std::string help;
  std::string value_name = "VALUE";       // of an option, for the help
  std::vector<std::string> choices = {};  // the only valid values, if not empty
  std::string short_name = {};            // "-o"
  std::string field = {};                 // the API's name for it, if it differs from the option's
  bool is_required = false;               // an option that must be given (or be in --file)

  bool is_option() const { return name.starts_with("--"); }
  bool is_repeatable() const { return kind == Kind::rest || kind == Kind::list || kind == Kind::several; }
};

Parameter argument(std::string name, std::string help);
Parameter optional_argument(std::string name, std::string help);
Parameter rest(std::string name, std::string help);
Parameter option(std::string name, std::string value_name, std::string help);
Parameter choice(std::string name, std::vector<std::string> choices, std::string help);  // an option
Parameter list_option(std::string name, std::string value_name, std::string help);
Parameter several_option(std::string name, std::string value_name, std::string help);
Parameter flag(std::string name, std::string help);
Parameter required(Parameter parameter);
Parameter with_short(Parameter parameter, std::string short_name);
Parameter with_field(Parameter parameter, std::string field);  // what the API calls it

// Parameters that several commands share, so that one thing has one name everywhere.
Parameter reason_option();
Parameter yes_flag();
Parameter watch_flag();
Parameter tenant_option();  // a filter of commands that cover all tenants
Parameter json_file_option();
Parameter overlap_option();               // of a rotated secret
std::vector<Parameter> period_options();  // --since, --until
std::vector<Parameter> output_options();  // --output, --json

template <class... More>
std::vector<Parameter> join(std::vector<Parameter> first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}

// Decides which common options a command has.
enum class Needs {
  nothing,
  server,    // a running postrider over HTTP: --server, --key, --profile, --output
  settings,  // this machine's own settings: --config and every setting as a flag
};

struct Command {
  std::string name;
  std::string help;  // one line
  std::vector<Parameter> parameters = {};
  std::function<int(Invocation&)> run = {};  // returns the exit code
  std::vector<Command> commands = {};        // instead of run: a group
  Needs needs = Needs::server;
  std::string section = {};  // of the overview, for top-level commands
  std::vector<std::string> examples = {};
  std::vector<std::string> aliases = {};
  bool is_hidden = false;  // not listed: internal, or an alias of a nested command

  Command example(std::string text) && {
    examples.push_back(std::move(text));
    return std::move(*this);
  }
  Command alias(std::string other) && {
    aliases.push_back(std::move(other));
    return std::move(*this);
  }
  bool is_group() const { return !commands.empty(); }
};

Command command(std::string name, std::string help, std::vector<Parameter> parameters,
                std::function<int(Invocation&)> run, Needs needs = Needs::server);
Command group(std::string name, std::string help, std::vector<Command> commands);

// The command with this name or alias (`ls` for list, `rm` for delete, `get` for show); null if none.
const Command* find_command(const std::vector<Command>& commands, const std::string& word);

// The options that `needs` brings with it.
std::vector<Parameter> common_parameters(Needs needs);
// The command's own parameters and the common ones.
std::vector<Parameter> all_parameters(const Command& command);

}  // namespace postrider::cli
