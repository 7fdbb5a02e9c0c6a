// One command as it was called: its values, the server it talks to, and where its results go.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/cli/command.hpp"
#include "postrider/cli/exit_code.hpp"
#include "postrider/cli/output.hpp"
#include "postrider/cli/remote.hpp"
#include "postrider/config/load.hpp"

namespace postrider::cli {

namespace json = boost::json;

// The command line is invalid. what() explains how to correct it; exit code 2.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The user declined the confirmation. Exit code 1.
struct Declined : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Given = std::map<std::string, std::vector<std::string>, std::less<>>;  // flags have an empty list

// The server that was chosen, and why.
struct ServerChoice {
  ServerOptions options;
  std::string profile;            // empty: none
  std::string key_from;           // "--key-file", "POSTRIDER_KEY"; empty: no key
  std::string key_withheld_from;  // the profile whose key is for another server
};

class Invocation {
 public:
  // `command` must outlive this.
  Invocation(const Command& command, Given given, config::Environment environment);
  ~Invocation();

  bool has(std::string_view name) const { return given_.contains(name); }
  std::string argument(std::string_view name) const;  // a required one
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;  // throws Misuse if it is none
  // "1h", "2d", a date or RFC 3339 as RFC 3339. Throws Misuse.
  std::optional<std::string> time(std::string_view name) const;
  // "30s", "5m", "1d". Throws Misuse.
  std::optional<std::chrono::milliseconds> duration(std::string_view name) const;

  // The running postrider. Throws Misuse when the profile or the key file is missing.
  Remote& server();
  const ServerChoice& server_choice();
  // This machine's settings, for commands with Needs::settings. Throws config::ConfigError.
  config::Loaded settings() const;
  const config::Environment& environment() const { return environment_; }

  // Asks before something is destroyed, on a terminal and without --yes. Throws Declined.
  void confirm(const std::string& question) const;

  bool as_json() const { return out_.format() == Format::json; }
  const Output& out() const { return out_; }
  const Command& command() const { return command_; }

 private:
  const Command& command_;
  Given given_;
  config::Environment environment_;
  Output out_;
  std::optional<ServerChoice> choice_;
  std::unique_ptr<Remote> server_;
};

// The command line overrides the environment, and the environment overrides the profile.
ServerChoice choose_server(const Invocation& invocation);

// The text of a file, of standard input for "-". Throws Misuse.
std::string read_text(const std::string& path);
// The same without line breaks at the end: a key or a secret.
std::string read_secret(const std::string& path);
// JSON given in place, or as @file. Throws Misuse.
json::value read_json(std::string_view name, const std::string& text);

// Adds --reason to a request body, if given.
json::object with_reason(const Invocation& invocation, json::object body = {});
// Query parameters from options of the same name: "event_type" from --event-type; times are converted.
void add_filters(const Invocation& invocation, Target& target, std::initializer_list<const char*> filters);

// A list call, shown as a table. --limit N rows (50), --all, --cursor C: see list_parameters().
std::vector<Parameter> list_parameters();
Parameter format_option();  // --format of lists that can be exported
// `prepare` adds to each row what people see and the API does not have.
int show_list(Invocation& invocation, Target target, const std::vector<Column>& columns,
              std::string_view none = "Nothing found.",
              const std::function<void(json::object&)>& prepare = {});

}  // namespace postrider::cli
