// /v1/tenants
#include "postrider/registry/tenants.hpp"

#include <utility>

#include "postrider/api/resources/tenant_document.hpp"
#include "postrider/api/wire/conditional.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/api/wire/writable.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/registry/audience.hpp"

namespace postrider::api {

namespace {

using registry::TenantResult;
using registry::TenantSettings;

Response respond(const Call& call, const TenantResult& result, int status = 200) {
  if (!result) return call.reject(problem_of(result.error()));
  Response response = Response::json(status, tenant_json(*result, registry::audience_of(call.principal)));
  add_etag(response, result->revision);
  if (result->contact_secret) response.header("cache-control", "no-store");
  return response;
}

Response respond_created(const Call& call, const TenantResult& result) {
  Response response = respond(call, result, 201);
  if (result) response.header("location", "/v1/tenants/" + result->id);
  return response;
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  std::string id;
  TenantSettings settings;
  FieldProblems problems;
  const TenantRules rules = TenantRules::of(call.services.config);
  read_tenant(*document, &id, rules, settings, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const TenantResult created =
      co_await registry::create_tenant(*lease, call.services.registry, caller, id, std::move(settings));
  co_return respond_created(call, created);
}

Task<TenantResult> replace(const Call& call, pg::Link& link, const TenantSettings& settings) {
  registry::TenantEdit edit = [&settings](TenantSettings& current) {
    current = settings;
    return true;
  };
  const registry::Caller caller = call.caller();
  co_return co_await registry::change_tenant(link, call.services.registry, caller, call.tenant(),
                                             std::move(edit));
}

bool is_unknown(const TenantResult& result) {
  return !result && result.error().kind == registry::RejectionKind::unknown_tenant;
}

// Creates the tenant with the ID of the path, or replaces all its settings.
Task<Response> put(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  TenantSettings settings;
  FieldProblems problems;
  if (!model::is_tenant_id(call.tenant())) problems.push_back({"tenant", std::string(model::kTenantIdRule)});
  const TenantRules rules = TenantRules::of(call.services.config);
  read_tenant(*document, nullptr, rules, settings, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const TenantResult replaced = co_await replace(call, *lease, settings);
  if (!is_unknown(replaced)) co_return respond(call, replaced);
  if (call.request.header("if-match"))
    co_return call.reject(problem_of(registry::Rejection{registry::RejectionKind::changed_meanwhile}));

  const registry::Caller caller = call.caller();
  const TenantResult created =
      co_await registry::create_tenant(*lease, call.services.registry, caller, call.tenant(), settings);
  if (created || created.error().kind != registry::RejectionKind::tenant_exists)
    co_return respond_created(call, created);
  // Another request created it in the meantime.
  const TenantResult replaced_after_all = co_await replace(call, *lease, settings);
  co_return respond(call, replaced_after_all);
}

Task<Response> list(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  std::string after = query.after();
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const std::vector<registry::Tenant> tenants =
      co_await registry::list_tenants(*lease, std::move(after), limit + 1);
  const http::Audience audience = registry::audience_of(call.principal);
  std::vector<PageRow> rows;
  for (const auto& tenant : tenants) rows.push_back({tenant.id, tenant_json(tenant, audience)});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  std::string id = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, std::move(id));
  if (!tenant) co_return call.reject(unknown("tenant"));
  const TenantResult found = *tenant;
  co_return respond(call, found);
}

Task<Response> change(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  if (const auto rejected = check_writable(call.principal, Written::tenant, *document, call.services.config))
    co_return call.reject(*rejected);
  FieldProblems problems;
  TenantSettings checked;
  const TenantRules rules = TenantRules::of(call.services.config);
  read_tenant(*document, nullptr, rules, checked, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  // The same fields again, now over what the tenant has.
  registry::TenantEdit edit = [&document, &rules, &problems](TenantSettings& settings) {
    read_tenant(*document, nullptr, rules, settings, problems);
    return problems.empty();
  };
  std::string id = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const TenantResult changed = co_await registry::change_tenant(*lease, call.services.registry, caller,
                                                                std::move(id), std::move(edit));
  co_return respond(call, changed);
}

Task<Response> remove(Call& call) {
  std::string id = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const std::optional<registry::Rejection> rejection =
      co_await registry::delete_tenant(*lease, caller, std::move(id));
  if (rejection) co_return call.reject(problem_of(*rejection));
  co_return Response::empty(204);
}

using StatusCall = Task<TenantResult> (*)(pg::Link&, const registry::Caller&, model::TenantId,
                                          std::optional<std::string>);

Task<Response> set_status(Call& call, StatusCall status_call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::optional<std::string> reason;
  read_reason(*document, reason, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  std::string id = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const TenantResult changed = co_await status_call(*lease, caller, std::move(id), std::move(reason));
  co_return respond(call, changed);
}

Task<Response> pause(Call& call) {
  return set_status(call, registry::pause_tenant);
}

Task<Response> resume(Call& call) {
  return set_status(call, registry::resume_tenant);
}

}  // namespace

void add_tenant_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants", Access::operators, create);
  routes.add(Method::get, "/v1/tenants", Access::read, list);
  routes.add(Method::get, "/v1/tenants/{tenant}", Access::read, show);
  const RouteOptions in_force{.changes_sending = true};
  routes.add(Method::put, "/v1/tenants/{tenant}", Access::operators, put, in_force);
  routes.add(Method::patch, "/v1/tenants/{tenant}", Access::customer, change, in_force);
  routes.add(Method::delete_, "/v1/tenants/{tenant}", Access::operators, remove, in_force);
  routes.add(Method::post, "/v1/tenants/{tenant}/pause", Access::operators, pause, in_force);
  routes.add(Method::post, "/v1/tenants/{tenant}/resume", Access::operators, resume, in_force);
}

}  // namespace postrider::api
