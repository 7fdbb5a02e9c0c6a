// /v1/tenants/{tenant}/contacts and /contact-secret: confirming e-mail addresses, and the secret that signs
// notices to URLs. The list itself is a field of the tenant.
#include "postrider/registry/contacts.hpp"

#include "postrider/api/resources/contact_document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/http/url.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/contact_secret.sql.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using registry::ContactResult;

Task<Response> make_secret(Call& call) {
  const model::TenantId tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, tenant);
  if (!known) co_return call.reject(unknown("tenant"));
  const registry::ContactSecret secret =
      registry::generate_contact_secret(call.services.registry.keys, tenant);
  pg::Batch batch;
  batch.add(registry::sql::set_contact_secret{.tenant = tenant, .sealed = pg::Bytes{secret.sealed}});
  registry::Snapshot after;
  after.add("secret", registry::masked_text);
  registry::add_audit(
      batch, call.caller(),
      {.action = "contact_secret.rotate", .tenant = tenant, .object = tenant, .after = std::move(after)});
  co_await lease->run(std::move(batch));
  JsonObject json;
  json.add("secret", secret.text);
  Response response = Response::json(201, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

using ContactCall = Task<ContactResult> (*)(pg::Link&, const registry::Caller&, model::TenantId, std::string);

struct ContactAction {
  ContactCall act;
  int status;
};

Task<Response> run(Call& call, ContactAction action) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::string address;
  Fields fields(*document, "", problems);
  fields.require("address");
  fields.read("address", address, {.bytes_max = http::kUrlBytesMax});
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  model::TenantId tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  auto acting = action.act(*lease, caller, std::move(tenant), std::move(address));
  const ContactResult contact = co_await acting;
  if (!contact) co_return call.reject(problem_of(contact.error()));
  co_return Response::json(action.status, contact_json(*contact));
}

Task<Response> vouch(Call& call) {
  return run(call, {registry::vouch_for_contact, 200});
}

Task<Response> request_confirmation(Call& call) {
  return run(call, {registry::request_confirmation, 202});
}

}  // namespace

void add_contact_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants/{tenant}/contact-secret", Access::customer, make_secret);
  // A customer cannot vouch for an address that may be a stranger's.
  routes.add(Method::post, "/v1/tenants/{tenant}/contacts/confirm", Access::operators, vouch);
  routes.add(Method::post, "/v1/tenants/{tenant}/contacts/request-confirmation", Access::customer,
             request_confirmation);
}

}  // namespace postrider::api
