#include "postrider/cli/report.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "postrider/cli/terminal.hpp"

namespace postrider::cli {

namespace {

constexpr auto kWatchPause = std::chrono::seconds(2);

std::string text_at(const json::value& document, std::string_view name) {
  const json::object* object = document.if_object();
  const json::value* value = object ? object->if_contains(name) : nullptr;
  return value && value->is_string() ? visible(value->get_string()) : "";
}

std::string key_hint(Invocation& invocation) {
  const ServerChoice& server = invocation.server_choice();
  if (!server.key_withheld_from.empty() && server.key_from.empty())
    return "No API key was sent: the key of profile `" + server.key_withheld_from +
           "` is only used for the profile's own server.\n  Give a key for " + server.options.url +
           " with --key-file or POSTRIDER_KEY.";
  if (server.key_from.empty())
    return "No API key was sent. Set one with --key-file FILE, POSTRIDER_KEY or `postrider profile add`.";
  return "The key came from " + server.key_from +
         ". `postrider serve` prints the admin key at its first start.";
}

std::string hint(const ServerProblem& problem, Invocation& invocation) {
  const std::string type = text_at(problem.document, "type");
  if (problem.status == 401) return key_hint(invocation);
  if (problem.status == 403) return "Run `postrider whoami` to see the role of your key.";
  if (type.ends_with(":unknown-tenant")) return "Run `postrider tenant list` to see the tenants.";
  if (type.ends_with(":unknown-endpoint"))
    return "Run `postrider endpoint list " + invocation.value("tenant").value_or("TENANT") +
           "` to see the endpoints.";
  if (type.ends_with(":unknown-event"))
    return "Run `postrider event list " + invocation.value("tenant").value_or("TENANT") +
           "` to see the events.";
  if (type.ends_with(":unknown-delivery")) return "Run `postrider delivery list` to see the deliveries.";
  if (type.ends_with(":unknown-source")) return "Run `postrider source list` to see the sources.";
  if (type.ends_with(":unknown-key")) return "Run `postrider key list` to see the keys.";
  if (problem.status == 503) return "The server is running but cannot do this at the moment; try again.";
  return "";
}

void report(const ServerProblem& problem, Invocation& invocation) {
  if (invocation.as_json() && problem.document.is_object())
    std::fprintf(stderr, "%s\n", json::serialize(problem.document).c_str());
  else
    std::fprintf(stderr, "postrider: %s\n",
                 problem_text(problem, invocation.command(), hint(problem, invocation)).c_str());
}

[[noreturn]] void watch(Invocation& invocation) {
  while (true) {
    if (is_output_terminal()) clear_screen();
    invocation.command().run(invocation);
    std::fflush(stdout);
    std::this_thread::sleep_for(kWatchPause);
  }
}

}  // namespace

std::string parameter_of(const Command& command, std::string_view pointer) {
  std::string_view name = pointer;
  if (name.starts_with('/')) name.remove_prefix(1);
  name = name.substr(0, name.find('/'));
  std::string option = "--" + std::string(name);
  std::replace(option.begin(), option.end(), '_', '-');
  for (const Parameter& parameter : command.parameters) {
    const bool is_same = parameter.field.empty() ? parameter.name == option || parameter.name == name
                                                 : parameter.field == name;
    if (is_same) return parameter.is_option() ? parameter.name : "<" + parameter.name + ">";
  }
  return std::string(pointer);
}

std::string problem_text(const ServerProblem& problem, const Command& command, const std::string& hint) {
  std::string text = visible(problem.what());
  const json::object* object = problem.document.if_object();
  const json::value* errors = object ? object->if_contains("errors") : nullptr;
  if (errors && errors->is_array())
    for (const json::value& error : errors->get_array()) {
      const std::string pointer = text_at(error, "pointer");
      text += "\n  " + (pointer.empty() ? "the request" : parameter_of(command, pointer)) + ": " +
              text_at(error, "detail");
    }
  if (!hint.empty()) text += "\n  " + hint;
  if (const std::string id = text_at(problem.document, "request_id"); !id.empty() && problem.status >= 500)
    text += "\n  Request ID for the server's log: " + id;
  return text;
}

ExitCode exit_code_of(const ServerProblem& problem) {
  if (problem.status >= 500) return unreachable;
  return problem.status == 404 ? not_found : refused;
}

int run_reported(Invocation& invocation) {
  try {
    if (invocation.has("--watch")) watch(invocation);
    return invocation.command().run(invocation);
  } catch (const ServerProblem& problem) {
    report(problem, invocation);
    return exit_code_of(problem);
  } catch (const ServerUnreachable& error) {
    std::fprintf(stderr,
                 "postrider: %s\n  Is `postrider serve` running there? Set the server with --server, "
                 "POSTRIDER_SERVER or a profile.\n",
                 visible(error.what()).c_str());
    return unreachable;
  } catch (const config::ConfigError& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return misused;
  } catch (const Declined& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return failed;
  }
}

}  // namespace postrider::cli
