#include "postrider/cli/report.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

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
  if (type.ends_with(":unknown-token"))
    return "Run `postrider token list " + invocation.value("tenant").value_or("TENANT") +
           "` to see the tokens.";
  if (type.ends_with(":unknown-key")) return "Run `postrider key list` to see the keys.";
  if (type.ends_with(":tenant-exists"))
    return "To change it, run `postrider tenant update " + invocation.value("tenant").value_or("TENANT") +
           "`.";
  if (type.ends_with(":endpoint-exists"))
    return "To replace it, run `postrider endpoint put " + invocation.value("tenant").value_or("TENANT") +
           " " + invocation.value("--id").value_or("ENDPOINT") + " …`.";
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

// As it can be typed: 100ms, 2m, 7d.
std::string typed_duration(int64_t milliseconds) {
  constexpr std::pair<int64_t, const char*> kUnits[] = {
      {86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1'000, "s"}};
  for (const auto& [unit, name] : kUnits)
    if (milliseconds % unit == 0) return std::to_string(milliseconds / unit) + name;
  return std::to_string(milliseconds) + "ms";
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

// "must be an integer from 100 to 120000" becomes "must be from 100ms to 2m", "must be at most 30,000, …"
// becomes "must be at most 30s, …".
std::string in_units(const Command& command, std::string_view pointer, const std::string& detail) {
  constexpr std::string_view kStart = "must be an integer from ", kMost = "must be at most ";
  const std::string option = parameter_of(command, pointer);
  for (const Parameter& parameter : command.parameters) {
    const bool is_ms = parameter.field.ends_with("_ms"), is_seconds = parameter.field.ends_with("_seconds");
    if (parameter.name != option || parameter.value_name != "DURATION" || (!is_ms && !is_seconds)) continue;
    const auto duration = [&](std::string number) {
      std::erase(number, ',');
      return typed_duration(std::strtoll(number.c_str(), nullptr, 10) * (is_ms ? 1 : 1'000));
    };
    const size_t to = detail.find(" to ");
    if (detail.starts_with(kStart) && to != std::string::npos)
      return "must be from " + duration(detail.substr(kStart.size(), to - kStart.size())) + " to " +
             duration(detail.substr(to + 4));
    const size_t rest = detail.find(", ", kMost.size());
    if (detail.starts_with(kMost) && rest != std::string::npos)
      return std::string(kMost) + duration(detail.substr(kMost.size(), rest - kMost.size())) +
             detail.substr(rest);
  }
  return detail;
}

std::string problem_text(const ServerProblem& problem, const Command& command, const std::string& hint) {
  std::string text = visible(problem.what());
  const json::object* object = problem.document.if_object();
  const json::value* errors = object ? object->if_contains("errors") : nullptr;
  if (errors && errors->is_array())
    for (const json::value& error : errors->get_array()) {
      const std::string pointer = text_at(error, "pointer");
      text += "\n  " + (pointer.empty() ? "the request" : parameter_of(command, pointer)) + ": " +
              in_units(command, pointer, text_at(error, "detail"));
    }
  if (!hint.empty()) text += "\n  " + hint;
  if (const std::string id = text_at(problem.document, "request_id"); !id.empty() && problem.status >= 500)
    text += "\n  Request ID for the server's log: " + id;
  return text;
}

ExitCode exit_code_of(const ServerProblem& problem) {
  if (problem.status >= 500) return unreachable;
  return problem.status == 404 ? not_found : rejected;
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
