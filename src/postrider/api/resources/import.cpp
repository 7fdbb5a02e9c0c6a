// POST /v1/endpoints/import: endpoints with their secrets from elsewhere, one JSON object a line.
//
// A line is what PUT takes, with `tenant_id` and, so that the import can be repeated, an `id` of one's own.
// Each line is a transaction of its own and gets its own result. Names are not looked up: what they lead to
// is checked at each delivery.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <utility>

#include "postrider/api/resources/endpoint_document.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/duplicate_fields.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/endpoints.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using registry::EndpointResult;

constexpr size_t kLinesMax = 1'000;

struct Line {
  std::string tenant;
  std::optional<std::string> id;
  boost::json::object object;  // the rest of it
  EndpointDocument document;
};

struct LineResult {
  int status = 0;
  std::string tenant_id;
  std::string id;  // empty: none
  http::Problem problem = {};
};

std::string result_json(size_t number, const LineResult& result) {
  JsonObject json;
  json.add("line", number).add("status", result.status);
  if (!result.tenant_id.empty()) json.add("tenant_id", result.tenant_id);
  if (!result.id.empty()) json.add("id", result.id);
  if (result.status < 400) return json.text();
  std::vector<std::string> errors;
  for (const auto& error : result.problem.errors)
    errors.push_back(JsonObject().add("pointer", error.pointer).add("detail", error.detail).text());
  std::string detail = http::full_detail(result.problem);
  for (const auto& error : result.problem.errors) detail += " " + error.pointer + " " + error.detail + ".";
  json.add("detail", detail).raw("errors", json_array(errors));
  return json.text();
}

LineResult rejected(const Line& line, http::Problem problem) {
  return {problem.status, line.tenant, line.id.value_or(""), std::move(problem)};
}

// Reads whose endpoint the line is; the problem if it cannot be taken.
std::optional<http::Problem> read_line(std::string_view text, Line& line) {
  boost::json::parse_options options;
  options.max_depth = json_depth_max;
  boost::json::error_code error;
  boost::json::value value =
      boost::json::parse(boost::json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return malformed("Invalid JSON: " + error.message() + ".");
  if (const auto twice = find_duplicate_field(text)) return invalid({{*twice, "duplicate field"}});
  if (!value.is_object()) return invalid({{"", "must be an object"}});
  boost::json::object& object = value.get_object();
  FieldProblems problems;
  for (const char* name : {"tenant_id", "id"}) {
    const auto* member = object.if_contains(name);
    const auto* given = member ? member->if_string() : nullptr;
    const bool is_tenant = std::string_view(name) == "tenant_id";
    if (given && is_tenant && model::is_tenant_id(*given)) {
      line.tenant = std::string(*given);
    } else if (given && !is_tenant && model::is_caller_id(*given)) {
      line.id = std::string(*given);
    } else if (member || is_tenant) {
      const std::string rule(is_tenant ? model::kTenantIdRule : "must be 1 to 64 letters, digits, _ and -");
      problems.push_back({"/" + std::string(name), rule});
    }
    object.erase(name);
  }
  line.object = std::move(object);
  if (problems.empty()) return std::nullopt;
  return invalid(std::move(problems));
}

// Reads the endpoint itself, which `networks` of its tenant may open private networks for.
std::optional<http::Problem> read_endpoint(const Call& call, std::vector<base::Network> networks,
                                           Line& line) {
  EndpointRules rules{call.services.config, call.services.guard, call.services.registry.references,
                      registry::audience_of(call.principal)};
  rules.allow_networks = std::move(networks);
  FieldProblems problems;
  line.document.draft.settings = default_settings(rules.config);
  line.document.read(line.object, rules, problems);
  if (problems.empty()) return std::nullopt;
  return invalid(std::move(problems));
}

Task<EndpointResult> replace(const Call& call, pg::Link& link, const Line& line) {
  registry::EndpointEdit edit;
  edit.secret = line.document.secret;
  edit.apply = [&line](registry::EndpointDraft& draft) {
    draft = line.document.draft;
    if (!draft.headers) draft.headers.emplace();
    return true;
  };
  registry::EndpointRef of{line.tenant, *line.id};
  const registry::Caller caller = call.caller();
  co_return co_await registry::change_endpoint(link, call.services.registry, caller, std::move(of),
                                               std::move(edit));
}

Task<LineResult> take_line(const Call& call, pg::Link& link, const Line& line) {
  if (line.id) {
    const EndpointResult replaced = co_await replace(call, link, line);
    if (replaced) co_return LineResult{200, line.tenant, replaced->public_id};
    if (replaced.error().kind != registry::RejectionKind::unknown_endpoint)
      co_return rejected(line, problem_of(replaced.error()));
  }
  registry::NewEndpoint wanted;
  wanted.tenant = line.tenant;
  wanted.own_id = line.id;
  wanted.draft = line.document.draft;
  wanted.secret = line.document.secret;
  const registry::Caller caller = call.caller();
  const auto created =
      co_await registry::create_endpoint(link, call.services.registry, caller, std::move(wanted));
  if (!created) co_return rejected(line, problem_of(created.error()));
  co_return LineResult{201, line.tenant, created->endpoint.public_id};
}

// The result that an import of the line would have, as far as a dry run can know.
Task<LineResult> look_at_line(pg::Link& link, const Line& line) {
  const auto tenant = co_await registry::find_tenant(link, line.tenant);
  if (!tenant) co_return rejected(line, unknown("tenant"));
  if (!line.id) co_return LineResult{201, line.tenant, ""};
  registry::EndpointRef of{line.tenant, *line.id};
  const EndpointResult found = co_await registry::find_endpoint(link, std::move(of));
  co_return LineResult{found ? 200 : 201, line.tenant, *line.id};
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

Task<Response> import_endpoints(Call& call) {
  Query query(call.request);
  const std::string dry_run = query.value("dry_run").value_or("false");
  if (dry_run != "true" && dry_run != "false") query.reject("dry_run", "must be true or false");
  FieldProblems problems = query.finish();
  const std::vector<std::string_view> lines = split_lines(call.request.body);
  if (lines.size() > kLinesMax)
    problems.push_back({"", "must have at most " + std::to_string(kLinesMax) + " lines"});
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));

  const pg::Pool::Handle lease = co_await call.database();
  std::vector<std::string> results;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_not_of(" \t") == std::string_view::npos) continue;
    Line line;
    LineResult result;
    std::optional<http::Problem> problem = read_line(lines[i], line);
    if (!problem) {
      auto networks = co_await registry::find_allowed_networks(*lease, line.tenant, line.id.value_or(""));
      problem = read_endpoint(call, std::move(networks.of_tenant), line);
    }
    if (problem) {
      result = rejected(line, std::move(*problem));
    } else if (dry_run == "true") {
      result = co_await look_at_line(*lease, line);
    } else {
      result = co_await take_line(call, *lease, line);
    }
    results.push_back(result_json(i + 1, result));
  }
  JsonObject json;
  json.raw("data", json_array(results)).add("dry_run", dry_run == "true");
  co_return Response::json(200, json.text());
}

}  // namespace

void add_import_routes(Routes& routes) {
  const auto body_bytes_max = static_cast<size_t>(routes.services().config.batch_body_bytes_max);
  routes.add(Method::post, "/v1/endpoints/import", Access::operate, import_endpoints,
             {.body_bytes_max = body_bytes_max});
}

}  // namespace postrider::api
