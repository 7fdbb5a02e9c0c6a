// What the command line offers, as a table: every group is a file that returns its commands. Parsing, help
// and shell completion are made from the table, so a command exists in all of them or in none.
//
//   Command tenant_commands() {
//     return group("tenant", "Tenants and their limits",
//                  {command("show", "One tenant", {argument("tenant", "Its id")}, show)});
//   }
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace postrider::cli {

class Invocation;

struct Parameter {
  enum class Kind {
    argument,           // must be given, by its place
    optional_argument,  // may be given, behind the others
    rest,               // any number, behind the others
    option,             // --name VALUE, once
    list,               // --name VALUE, any number of times
    several,            // --name VALUE…, as a shell's pattern gives them
    flag,               // --name
  };
  Kind kind = Kind::argument;
  std::string name;  // "tenant", "--limit"
  std::string help;
  std::string value_name = "VALUE";       // of an option, for the help
  std::vector<std::string> choices = {};  // if only these are right
};

Parameter argument(std::string name, std::string help);
Parameter optional_argument(std::string name, std::string help);
Parameter rest(std::string name, std::string help);
Parameter option(std::string name, std::string value_name, std::string help);
Parameter choice(std::string name, std::vector<std::string> choices, std::string help);  // an option
Parameter list_option(std::string name, std::string value_name, std::string help);
Parameter several_option(std::string name, std::string value_name, std::string help);
Parameter flag(std::string name, std::string help);

// What a command works on; decides which common options it has.
enum class Needs {
  nothing,
  server,    // a running postrider over HTTP: --server, --key, --profile, --json
  settings,  // this machine's own settings: --config and every setting as a flag
};

struct Command {
  std::string name;
  std::string help;  // one line
  std::vector<Parameter> parameters = {};
  std::function<int(Invocation&)> run = {};  // returns the exit code
  std::vector<Command> commands = {};        // instead of run: a group
  Needs needs = Needs::server;
  std::string section = {};  // of the overview, for those at the top
};

Command command(std::string name, std::string help, std::vector<Parameter> parameters,
                std::function<int(Invocation&)> run, Needs needs = Needs::server);
Command group(std::string name, std::string help, std::vector<Command> commands);

// The options that `needs` brings with it.
std::vector<Parameter> common_parameters(Needs needs);

}  // namespace postrider::cli
