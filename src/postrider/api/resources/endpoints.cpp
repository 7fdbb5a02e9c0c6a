// /v1/tenants/{tenant}/endpoints
#include "postrider/registry/endpoints.hpp"

#include <utility>

#include "postrider/api/resources/endpoint_document.hpp"
#include "postrider/api/resources/lists.hpp"
#include "postrider/api/resources/tenant_document.hpp"
#include "postrider/api/wire/conditional.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/api/wire/writable.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/registry/allow_networks.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::api {

namespace {

using model::EndpointStatus;
using registry::EndpointRef;
using registry::EndpointResult;
using CreateResult = base::Result<registry::CreatedEndpoint, registry::Rejection>;

constexpr auto kLookupPatience = std::chrono::seconds(2);

EndpointRef ref(const Call& call) {
  return {call.tenant(), call.parameter("endpoint")};
}

EndpointReader reader_of(const Call& call) {
  return {registry::audience_of(call.principal), call.services.registry.keys,
          call.services.config.disable_after};
}

Response respond(const Call& call, const EndpointResult& result) {
  if (!result) return call.reject(problem_of(result.error()));
  Response response = Response::json(200, endpoint_json(*result, reader_of(call)));
  add_etag(response, result->revision);
  return response;
}

Response respond(const Call& call, const CreateResult& result) {
  if (!result) return call.reject(problem_of(result.error()));
  const auto& endpoint = result->endpoint;
  Response response = Response::json(201, endpoint_json(endpoint, reader_of(call), &result->secret));
  response.header("location", "/v1/tenants/" + endpoint.tenant_id + "/endpoints/" + endpoint.public_id);
  response.header("cache-control", "no-store");
  add_etag(response, endpoint.revision);
  return response;
}

// A name's addresses are checked if it resolves now; one that does not, or cannot be checked, is saved, and
// checked at each delivery.
Task<std::optional<http::BlockedDestination>> reject_name(const Services& services,
                                                          const EndpointDocument& document,
                                                          const EndpointRules& rules) {
  const std::optional<http::Url>& url = document.url;
  if (!url || url->address || !services.resolver) co_return std::nullopt;
  const base::SteadyTime deadline = base::BootClock::now() + kLookupPatience;
  const auto addresses = co_await services.resolver->resolve(std::string(url->host()), deadline);
  if (!addresses) co_return std::nullopt;
  std::optional<http::BlockedDestination> rejected = document.guard(rules).inspect(*url, *addresses);
  if (rejected && rejected->reason == http::BlockedReason::unknown_own) co_return std::nullopt;
  co_return rejected;
}

bool may_choose_networks(const Call& call) {
  return writer_of(call.principal) == Writer::operators;
}

// References to what the server keeps are not for keys of a tenant: it could sign with another one's secret.
EndpointRules rules_for(const Call& call) {
  const auto* references = call.principal.is_bound() ? nullptr : call.services.registry.references;
  EndpointRules rules{call.services.config, call.services.guard, references,
                      registry::audience_of(call.principal)};
  const int rate_max = call.services.config.customer_rate_per_second;
  if (call.principal.is_customer() && rate_max > 0) rules.rate_per_second_max = rate_max;
  return rules;
}

struct ExpectedDocument {
  DocumentKind kind;
  std::string endpoint;  // its ID; empty: it will get one
};

// The networks that the URL of a document may reach besides those that the document lists: the tenant's, and
// the endpoint's own where the change keeps them.
Task<std::vector<base::Network>> networks_beside(const Call& call, const boost::json::object& document,
                                                 ExpectedDocument expected) {
  if (!document.contains("url")) co_return std::vector<base::Network>();
  const pg::Pool::Handle lease = co_await call.database();
  const auto networks = co_await registry::find_allowed_networks(*lease, call.tenant(), expected.endpoint);
  const bool keeps_own = expected.kind == DocumentKind::patch || !may_choose_networks(call);
  co_return keeps_own && !document.contains("allow_networks") ? networks.both() : networks.of_tenant;
}

struct ReadRequest {
  EndpointDocument document;
  EndpointRules rules;
};

// The document of the request, validated as far as that needs no lock.
Task<base::Result<ReadRequest, http::Problem>> read_request(const Call& call, ExpectedDocument expected) {
  const auto json = parse_body(call.request);
  if (!json) co_return base::Failure{json.error()};
  if (const auto rejected = check_writable(call.principal, Written::endpoint, *json, call.services.config))
    co_return base::Failure{*rejected};
  EndpointRules rules = rules_for(call);
  rules.allow_networks = co_await networks_beside(call, *json, expected);
  EndpointDocument document;
  document.kind = expected.kind;
  document.draft.settings = default_settings(rules.config);
  FieldProblems problems;
  document.read(*json, rules, problems);
  if (!problems.empty()) co_return base::Failure{invalid(std::move(problems))};
  const std::optional<http::BlockedDestination> rejected =
      co_await reject_name(call.services, document, rules);
  if (rejected) {
    problems.push_back({"/url", http::describe(*rejected, rules.audience)});
    co_return base::Failure{invalid(std::move(problems))};
  }
  ReadRequest read{std::move(document), std::move(rules)};
  co_return read;
}

// The deliveries that were pending are canceled, and the history shows it.
std::string canceled_json(const registry::Endpoint& endpoint, std::string_view status,
                          std::optional<base::Timestamp> before = std::nullopt) {
  JsonObject json;
  json.add("id", endpoint.public_id)
      .add("tenant_id", endpoint.tenant_id)
      .add("status", status)
      .add("deliveries_canceled", endpoint.pending)
      .add("deliveries_canceled_is_capped", endpoint.is_pending_capped);
  if (before) json.add("created_before", *before);
  return json.text();
}

Task<Response> create(Call& call) {
  ExpectedDocument expected{DocumentKind::whole, ""};
  auto read = co_await read_request(call, std::move(expected));
  if (!read) co_return call.reject(read.error());
  EndpointDocument& document = read->document;
  registry::NewEndpoint wanted;
  wanted.tenant = call.tenant();
  wanted.draft = std::move(document.draft);
  wanted.secret = std::move(document.secret);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const CreateResult created =
      co_await registry::create_endpoint(*lease, call.services.registry, caller, std::move(wanted));
  co_return respond(call, created);
}

Task<EndpointResult> replace(const Call& call, pg::Link& link, const EndpointDocument& document) {
  registry::EndpointEdit edit;
  edit.secret = document.secret;
  const bool keeps_networks = !may_choose_networks(call);
  edit.apply = [&document, keeps_networks](registry::EndpointDraft& draft) {
    std::vector<base::Network> networks = std::move(draft.settings.allow_networks);
    draft = document.draft;
    if (keeps_networks) draft.settings.allow_networks = std::move(networks);
    if (!draft.headers) draft.headers.emplace();
    return true;
  };
  EndpointRef of = ref(call);
  const registry::Caller caller = call.caller();
  co_return co_await registry::change_endpoint(link, call.services.registry, caller, std::move(of),
                                               std::move(edit));
}

// Creates the endpoint with a custom ID, or replaces it.
Task<Response> put(Call& call) {
  ExpectedDocument expected{DocumentKind::whole, call.parameter("endpoint")};
  const auto read = co_await read_request(call, std::move(expected));
  if (!read) co_return call.reject(read.error());
  const EndpointDocument& document = read->document;
  if (!model::is_caller_id(call.parameter("endpoint")))
    co_return call.reject(invalid({{"endpoint", "must be 1 to 64 letters, digits, _ and -"}}));
  const pg::Pool::Handle lease = co_await call.database();
  const EndpointResult replaced = co_await replace(call, *lease, document);
  if (replaced || replaced.error().kind != registry::RejectionKind::unknown_endpoint)
    co_return respond(call, replaced);
  if (call.request.header("if-match"))
    co_return call.reject(problem_of(registry::Rejection{registry::RejectionKind::changed_meanwhile}));

  registry::NewEndpoint wanted;
  wanted.tenant = call.tenant();
  wanted.own_id = call.parameter("endpoint");
  wanted.draft = document.draft;
  wanted.secret = document.secret;
  const registry::Caller caller = call.caller();
  const CreateResult created =
      co_await registry::create_endpoint(*lease, call.services.registry, caller, std::move(wanted));
  if (created || created.error().kind != registry::RejectionKind::endpoint_exists)
    co_return respond(call, created);
  // Another request created it in the meantime.
  const EndpointResult replaced_after_all = co_await replace(call, *lease, document);
  co_return respond(call, replaced_after_all);
}

std::optional<EndpointStatus> read_status(Query& query) {
  const auto text = query.value("status");
  if (!text) return std::nullopt;
  const auto status = model::parse_endpoint_status(*text);
  if (status && *status != EndpointStatus::deleted) return status;
  query.reject("status", "must be one of: active, paused, disabled");
  return std::nullopt;
}

registry::EndpointFilter read_filter(const Call& call, Query& query) {
  registry::EndpointFilter filter;
  filter.tenant = call.tenant();
  filter.limit = query.limit() + 1;
  filter.status = read_status(query);
  filter.url = query.value("url");
  filter.event_type = query.value("event_type");
  if (filter.event_type && !model::is_event_type(*filter.event_type))
    query.reject("event_type", "must be an event type like invoice.paid");
  if (const std::string after = query.after(); !after.empty()) {
    const auto id = model::EndpointId::from_public_id(after);
    if (id)
      filter.after = *id;
    else
      query.reject("cursor", "invalid cursor");
  }
  return filter;
}

}  // namespace

Task<Response> list_endpoints(Call& call) {
  Query query(call.request);
  registry::EndpointFilter filter = read_filter(call, query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const int limit = filter.limit - 1;
  const pg::Pool::Handle lease = co_await call.database();
  const auto endpoints = co_await registry::list_endpoints(*lease, std::move(filter));
  if (!endpoints) co_return call.reject(problem_of(endpoints.error()));
  std::vector<PageRow> rows;
  for (const auto& endpoint : *endpoints)
    rows.push_back({endpoint.id.public_id(), endpoint_json(endpoint, reader_of(call))});
  co_return page(std::move(rows), limit);
}

namespace {

Task<Response> show(Call& call) {
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const EndpointResult found = co_await registry::find_endpoint(*lease, std::move(of));
  co_return respond(call, found);
}

Task<Response> change(Call& call) {
  // Validated once over the defaults, then applied over what the endpoint has: its fields do not depend on
  // each other, but for the signature and the secrets, which the registry looks at.
  ExpectedDocument expected{DocumentKind::patch, call.parameter("endpoint")};
  const auto checked = co_await read_request(call, std::move(expected));
  if (!checked) co_return call.reject(checked.error());
  const auto json = parse_body(call.request);
  const EndpointRules& rules = checked->rules;
  FieldProblems problems;
  registry::EndpointEdit edit;
  edit.apply = [&json, &rules, &problems](registry::EndpointDraft& draft) {
    EndpointDocument document;
    document.kind = DocumentKind::patch;
    document.draft = std::move(draft);
    document.read(*json, rules, problems);
    draft = std::move(document.draft);
    return problems.empty();
  };
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const EndpointResult changed = co_await registry::change_endpoint(*lease, call.services.registry, caller,
                                                                    std::move(of), std::move(edit));
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  co_return respond(call, changed);
}

Task<Response> remove(Call& call) {
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const EndpointResult deleted = co_await registry::delete_endpoint(*lease, caller, std::move(of));
  if (!deleted) co_return call.reject(problem_of(deleted.error()));
  co_return Response::json(200, canceled_json(*deleted, "deleted"));
}

Task<Response> cancel_pending(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Fields(*document, "", problems).finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const auto canceled =
      co_await registry::cancel_pending(*lease, call.services.registry, caller, std::move(of));
  if (!canceled) co_return call.reject(problem_of(canceled.error()));
  const auto& endpoint = canceled->endpoint;
  co_return Response::json(202, canceled_json(endpoint, model::label(endpoint.status), canceled->before));
}

Task<Response> set_status(Call& call, EndpointStatus status) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  registry::StatusChange wanted{status, std::nullopt};
  read_reason(*document, wanted.reason, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const EndpointResult changed =
      co_await registry::change_status(*lease, caller, std::move(of), std::move(wanted));
  co_return respond(call, changed);
}

Task<Response> pause(Call& call) {
  return set_status(call, EndpointStatus::paused);
}

Task<Response> resume(Call& call) {
  return set_status(call, EndpointStatus::active);
}

Task<Response> disable(Call& call) {
  return set_status(call, EndpointStatus::disabled);
}

}  // namespace

void add_endpoint_routes(Routes& routes) {
  const std::string all = "/v1/tenants/{tenant}/endpoints";
  const std::string one = all + "/{endpoint}";
  routes.add(Method::post, all, Access::customer, create);
  routes.add(Method::get, all, Access::read, list_endpoints);
  routes.add(Method::get, one, Access::read, show);
  const RouteOptions in_force{.changes_sending = true};
  routes.add(Method::put, one, Access::customer, put, in_force);
  routes.add(Method::patch, one, Access::customer, change, in_force);
  routes.add(Method::delete_, one, Access::customer, remove, in_force);
  routes.add(Method::post, one + "/pause", Access::customer, pause, in_force);
  routes.add(Method::post, one + "/resume", Access::customer, resume, in_force);
  routes.add(Method::post, one + "/disable", Access::customer, disable, in_force);
  routes.add(Method::post, one + "/cancel-pending", Access::customer, cancel_pending, in_force);
}

}  // namespace postrider::api
