#include "postrider/cli/report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>

namespace postrider::cli {

namespace {

std::string text_at(const json::value& document, std::string_view name) {
  const json::object* object = document.if_object();
  const json::value* value = object ? object->if_contains(name) : nullptr;
  return value && value->is_string() ? visible(value->get_string()) : "";
}

std::string hint(const ServerProblem& problem) {
  const std::string type = text_at(problem.document, "type");
  if (problem.status == 401)
    return "Give a key with --key-file, POSTRIDER_KEY or a profile (`postrider profile add`).";
  if (problem.status == 403)
    return "The key's role or tenant does not reach this; `postrider key list` shows roles.";
  if (type.ends_with(":unknown-tenant")) return "`postrider tenant list` shows the tenants.";
  if (type.ends_with(":unknown-endpoint")) return "`postrider endpoint list TENANT` shows the endpoints.";
  if (problem.status == 503) return "The server is there, but cannot do this now; try again.";
  return "";
}

}  // namespace

std::string problem_text(const ServerProblem& problem) {
  std::string text = visible(problem.what());
  const json::object* object = problem.document.if_object();
  const json::value* errors = object ? object->if_contains("errors") : nullptr;
  if (errors && errors->is_array())
    for (const json::value& error : errors->get_array()) {
      const std::string pointer = text_at(error, "pointer");
      text += "\n  " + (pointer.empty() ? "the document" : pointer) + ": " + text_at(error, "detail");
    }
  if (const std::string more = hint(problem); !more.empty()) text += "\n  " + more;
  if (const std::string id = text_at(problem.document, "request_id"); !id.empty() && problem.status >= 500)
    text += "\n  (request " + id + ")";
  return text;
}

ExitCode exit_code_of(const ServerProblem& problem) {
  if (problem.status >= 500) return unreachable;
  return problem.status == 404 ? not_found : refused;
}

int run_reported(const Command& command, Invocation& invocation) {
  try {
    return command.run(invocation);
  } catch (const ServerProblem& problem) {
    if (invocation.as_json() && problem.document.is_object())
      std::fprintf(stderr, "%s\n", json::serialize(problem.document).c_str());
    else
      std::fprintf(stderr, "postrider: %s\n", problem_text(problem).c_str());
    return exit_code_of(problem);
  } catch (const ServerUnreachable& error) {
    std::fprintf(
        stderr,
        "postrider: %s\n  Is `postrider serve` running there? --server, POSTRIDER_SERVER or a profile "
        "say where.\n",
        error.what());
    return unreachable;
  } catch (const config::ConfigError& error) {
    std::fprintf(stderr, "postrider: %s\n", error.what());
    return misused;
  }
}

}  // namespace postrider::cli
