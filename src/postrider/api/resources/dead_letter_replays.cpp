// …/dead-letters/replay, of one tenant and over all of them.
#include <boost/json/serialize.hpp>
#include <utility>

#include "postrider/api/resources/replay_document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/writable.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::api {

namespace {

using replay::RangeRequest;

constexpr int kTenantsMax = 1'000;

base::Result<RangeBody, http::Problem> read_request(const Call& call) {
  const auto document = parse_body(call.request);
  if (!document) return base::Failure{document.error()};
  if (auto rejected = check_writable(call.principal, Written::replay, *document, call.services.config))
    return base::Failure{std::move(*rejected)};
  FieldProblems problems;
  const base::Timestamp now = call.services.registry.ids.now();
  RangeBody body = read_dead_letters(*document, call.services.config, now, problems);
  if (!problems.empty()) return base::Failure{invalid(std::move(problems))};
  return body;
}

Task<Response> replay_of_tenant(Call& call) {
  auto body = read_request(call);
  if (!body) co_return call.reject(body.error());
  body->request.range.tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<http::Problem> problem = co_await resolve(*lease, *body);
  if (problem) co_return call.reject(*problem);
  co_return co_await request_replay(call, *lease, std::move(body->request));
}

http::Problem too_many_tenants() {
  return problem(409, "too-many-tenants",
                 "Dead letters of more than 1,000 tenants match. Narrow the request by cause or time, or "
                 "replay the dead letters of each tenant.");
}

// One request per tenant; a range by endpoint has one tenant.
Task<base::Result<std::vector<RangeRequest>, http::Problem>> split_by_tenant(pg::Link& link,
                                                                             RangeBody& body) {
  std::vector<RangeRequest> requests;
  if (body.endpoint) {
    const std::vector<model::TenantId> tenants = co_await replay::find_endpoint_tenants(link, *body.endpoint);
    if (tenants.empty())
      co_return base::Failure{problem_of(registry::Rejection{registry::RejectionKind::unknown_endpoint})};
    if (tenants.size() > 1)
      co_return base::Failure{invalid(
          {{"/endpoint", "several tenants have an endpoint with this ID; use the path of its tenant"}})};
    body.request.range.tenant = tenants.front();
    const std::optional<http::Problem> rejected = co_await resolve(link, body);
    if (rejected) co_return base::Failure{*rejected};
    requests.push_back(body.request);
    co_return requests;
  }
  const auto tenants = co_await replay::find_tenants(link, body.request.range, kTenantsMax + 1);
  if (tenants.size() > kTenantsMax) co_return base::Failure{too_many_tenants()};
  for (const auto& each : tenants) {
    RangeRequest request = body.request;
    request.range.tenant = each.tenant;
    request.range.deliveries = each.deliveries;
    requests.push_back(std::move(request));
  }
  co_return requests;
}

// The request as a whole. Each tenant's replay has its own entry.
pg::Batch audit_request(const Call& call, const RangeBody& body, size_t tenants) {
  registry::Snapshot after;
  const auto document = parse_body(call.request);
  for (const auto& [name, value] : *document)
    if (name != "reason") after.raw_or_null(name, boost::json::serialize(value));
  after.add("tenants", tenants);
  pg::Batch batch;
  registry::add_audit(batch, call.caller(),
                      {.action = "dead_letter.replay",
                       .object = "dead_letters",
                       .after = std::move(after),
                       .reason = body.request.reason});
  return batch;
}

Task<Response> replay_over_tenants(Call& call) {
  auto body = read_request(call);
  if (!body) co_return call.reject(body.error());
  const pg::Pool::Handle lease = co_await call.database();
  const auto requests = co_await split_by_tenant(*lease, *body);
  if (!requests) co_return call.reject(requests.error());
  pg::Batch audit = audit_request(call, *body, requests->size());
  co_await lease->run(std::move(audit));
  const registry::Caller caller = call.caller();
  const std::vector<model::ReplayId> ids = co_await replay::request_ranges(*lease, caller, *requests);
  std::vector<std::string> items;
  for (size_t i = 0; i < ids.size(); ++i) {
    call.services.own_metrics.replay_requests.add();
    JsonObject item;
    item.add("id", ids[i].public_id()).add("tenant_id", (*requests)[i].range.tenant).add("status", "queued");
    items.push_back(item.text());
  }
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(202, json.text());
}

}  // namespace

void add_dead_letter_replay_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants/{tenant}/dead-letters/replay", Access::customer, replay_of_tenant);
  routes.add(Method::post, "/v1/dead-letters/replay", Access::operate, replay_over_tenants);
}

}  // namespace postrider::api
