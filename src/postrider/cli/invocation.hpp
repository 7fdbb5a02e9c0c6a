// One command as it was called: what was given, the server it talks to, and where its results go.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/cli/exit_code.hpp"
#include "postrider/cli/output.hpp"
#include "postrider/cli/remote.hpp"
#include "postrider/config/load.hpp"

namespace postrider::cli {

namespace json = boost::json;

// The command line says something that cannot be done. what() is a sentence; exit code 2.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Given = std::map<std::string, std::vector<std::string>, std::less<>>;  // flags have an empty list

class Invocation {
 public:
  Invocation(Given given, config::Environment environment);
  ~Invocation();

  bool has(std::string_view name) const { return given_.contains(name); }
  std::string argument(std::string_view name) const;  // one that must be given
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;  // throws Misuse if it is none

  // The running postrider. Throws Misuse when the profile or the key file is not there.
  Remote& server();
  // This machine's settings, for commands with Needs::settings. Throws config::ConfigError.
  config::Loaded settings() const;
  const config::Environment& environment() const { return environment_; }

  bool as_json() const { return has("--json"); }
  const Output& out() const { return out_; }

 private:
  Given given_;
  config::Environment environment_;
  Output out_;
  std::unique_ptr<Remote> server_;
};

// The text of a file, of standard input for "-". Throws Misuse.
std::string read_text(const std::string& path);
// JSON given in place, or as @file. Throws Misuse.
json::value read_json(std::string_view name, const std::string& text);

// Options that become fields of a document.
struct Field {
  enum class Kind { text, integer, number, words, json, pairs };
  Kind kind = Kind::text;
  std::string option;  // "--max-in-flight"
  std::string help;
  std::vector<std::string> choices = {};
  std::string field = {};  // if it is not the option's name with underscores

  std::string name() const;
};
std::vector<struct Parameter> field_parameters(const std::vector<Field>& fields);
// Adds what was given to the document; `none` for anything but a text is null.
void set_fields(const Invocation& invocation, const std::vector<Field>& fields, json::object& document);
// --file FILE, then the fields over it.
json::object read_document(const Invocation& invocation, const std::vector<Field>& fields);

// A list call, shown as a table. --limit N rows (50), --all, --cursor C: see list_parameters().
std::vector<struct Parameter> list_parameters();
int show_list(Invocation& invocation, Target target, const std::vector<Column>& columns);

}  // namespace postrider::cli
