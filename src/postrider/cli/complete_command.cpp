// `postrider __complete`: called by completion scripts for IDs, which only the server knows. Prints one word
// per line; errors print nothing, because an error message would end up in the command line.
#include <boost/json/array.hpp>
#include <chrono>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/parse.hpp"
#include "postrider/cli/profiles.hpp"

namespace postrider::cli {

namespace {

constexpr auto kTimeout = std::chrono::seconds(2);
constexpr int kPagesMax = 4;

// The words before the one that is being completed, taken apart.
struct Typed {
  const Command* command = nullptr;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> options;
  std::string open_option;  // the last word is an option that takes a value
};

Typed read_typed(const std::vector<std::string>& words) {
  Typed typed;
  const std::vector<Command>* commands = &command_table();
  size_t at = 0;
  for (; at < words.size() && !commands->empty(); ++at) {
    const Command* found = find_command(*commands, words[at]);
    if (found == nullptr) return {};
    typed.command = found;
    commands = &found->commands;
  }
  if (typed.command == nullptr || typed.command->is_group()) return {};
  const std::vector<Parameter> parameters = all_parameters(*typed.command);
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    typed.open_option.clear();
    if (!word.starts_with('-') || word == "-") {
      typed.arguments.push_back(word);
      continue;
    }
    const auto parameter = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& each) {
      return each.name == word || (!each.short_name.empty() && each.short_name == word);
    });
    if (parameter == parameters.end() || parameter->kind == Parameter::Kind::flag) continue;
    if (at + 1 < words.size())
      typed.options[parameter->name] = words[++at];
    else
      typed.open_option = parameter->name;
  }
  return typed;
}

// The name of what is being completed: "tenant", "endpoint", …
std::string wanted(const Typed& typed) {
  if (!typed.open_option.empty()) return typed.open_option.substr(2);
  std::vector<std::string> positions;
  for (const Parameter& parameter : typed.command->parameters)
    if (!parameter.is_option()) positions.push_back(parameter.name);
  const bool is_rest = !typed.command->parameters.empty() && !positions.empty();
  if (typed.arguments.size() < positions.size()) return positions[typed.arguments.size()];
  if (positions.empty() && typed.arguments.empty()) return "tenant";  // `delivery list acme`
  return is_rest ? positions.back() : "";
}

std::optional<std::string> argument_of(const Typed& typed, const std::string& name) {
  if (const auto found = typed.options.find("--" + name); found != typed.options.end()) return found->second;
  size_t position = 0;
  for (const Parameter& parameter : typed.command->parameters) {
    if (parameter.is_option()) continue;
    if (parameter.name == name && position < typed.arguments.size()) return typed.arguments[position];
    ++position;
  }
  return std::nullopt;
}

// Where the IDs of this kind are listed.
std::optional<Target> list_of(const std::string& what, const Typed& typed) {
  const auto tenant = argument_of(typed, "tenant");
  if (what == "tenant") return Target("v1", "tenants");
  if (what == "source") return Target("v1", "sources");
  if (what == "key") return Target("v1", "keys");
  if (what == "outbox") return Target("v1", "outboxes");
  if (what == "name" || what == "type" || what == "event-type") return Target("v1", "event-types");
  if (what == "delivery")
    return tenant ? Target("v1", "tenants", *tenant, "deliveries") : Target("v1", "deliveries");
  if (what == "message")
    if (const auto source = argument_of(typed, "source")) return Target("v1", "sources", *source, "messages");
  if (!tenant) return std::nullopt;
  if (what == "endpoint") return Target("v1", "tenants", *tenant, "endpoints");
  if (what == "event") return Target("v1", "tenants", *tenant, "events");
  if (what == "token") return Target("v1", "tenants", *tenant, "tokens");
  if (what == "replay") return Target("v1", "tenants", *tenant, "replays");
  return std::nullopt;
}

void print_id(Invocation& in, const json::object& row) {
  for (const char* field : {"id", "name"}) {
    const json::value* id = row.if_contains(field);
    if (id == nullptr || !id->is_string()) continue;
    in.out().line(visible(id->get_string()));
    return;
  }
}

void print_ids(Invocation& in, const Typed& typed) {
  const std::string what = wanted(typed);
  if (what == "profile" || (what == "name" && typed.command->needs == Needs::nothing)) {
    for (const auto& [name, server] : load_profiles(profiles_path(in.environment())).servers)
      in.out().line(name);
    return;
  }
  std::optional<Target> list = list_of(what, typed);
  if (!list) return;
  std::optional<std::string> cursor;
  for (int page = 0; page < kPagesMax; ++page) {
    Target target = *list;
    RemoteCall call{"GET", target.with("limit", "250").with("cursor", cursor)};
    call.timeout = kTimeout;
    const json::value response = in.server().call(call);
    for (const json::value& row : response.at("data").as_array()) print_id(in, row.as_object());
    const json::value* next = response.as_object().if_contains("next_cursor");
    if (next == nullptr || !next->is_string()) return;
    cursor = std::string(next->get_string());
  }
}

int complete(Invocation& in) {
  try {
    const Typed typed = read_typed(in.values("words"));
    if (typed.command == nullptr) return done;
    // The command line that is being completed may name the server.
    Given given;
    for (const char* name : {"--server", "--key", "--key-file", "--profile", "--ca-file"})
      if (const auto found = typed.options.find(name); found != typed.options.end() && found->second != "-")
        given[name] = {found->second};
    Invocation asking(in.command(), std::move(given), in.environment());
    print_ids(asking, typed);
  } catch (const std::exception&) {
    return failed;
  }
  return done;
}

}  // namespace

Command complete_command() {
  Command made = command("__complete", "Print completions of an argument",
                         {rest("words", "The words typed so far")}, complete)
                     .example("postrider __complete -- endpoint show acme");
  made.is_hidden = true;
  return made;
}

}  // namespace postrider::cli
