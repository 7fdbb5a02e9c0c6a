// POST /v1/tenants/{tenant}/contact-secret: a new secret for the notices that go to the tenant's URLs.
#include "postrider/api/contacts.sql.hpp"
#include "postrider/api/json_writer.hpp"
#include "postrider/api/problems.hpp"
#include "postrider/api/routes.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

Task<Response> make_secret(Call& call) {
  const model::TenantId tenant = call.tenant();
  const pg::Pool::Lease lease = co_await call.database();
  const std::optional<registry::Tenant> known = co_await registry::find_tenant(*lease, tenant);
  if (!known) co_return call.refuse(unknown_tenant());
  const std::string secret = crypto::generate_secret(crypto::SignatureScheme::standard);
  const std::string sealed = call.services.registry.keys.seal(secret, "contact_secret/" + tenant);
  pg::Batch batch;
  batch.with(sql::set_contact_secret, tenant, pg::Bytes{sealed});
  registry::Snapshot after;
  after.add("secret", registry::masked_text);
  registry::add_audit(
      batch, call.caller(),
      {.action = "contact_secret.rotate", .tenant = tenant, .object = tenant, .after = std::move(after)});
  co_await lease->run(std::move(batch));
  JsonObject json;
  json.add("secret", secret);
  Response response = Response::json(201, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

}  // namespace

void add_contact_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants/{tenant}/contact-secret", Access::operate, make_secret);
}

}  // namespace postrider::api
