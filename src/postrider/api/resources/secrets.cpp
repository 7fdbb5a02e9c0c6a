// /v1/tenants/{tenant}/endpoints/{endpoint}/secrets
#include "postrider/registry/secrets.hpp"

#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

using registry::EndpointRef;
using registry::Rejection;
using registry::RejectionKind;
using registry::Secret;

constexpr int32_t kOverlapDefault = 86'400;
constexpr IntegerRule kOverlapRule{0, 90 * 86'400};
constexpr TextRule kSecretRule{.bytes_max = 512};

EndpointRef ref(const Call& call) {
  return {call.tenant(), call.parameter("endpoint")};
}

// Where the server keeps a secret is the operator's business: keys of a tenant see only the kind.
std::string shown_reference(const Call& call, const std::string& reference) {
  if (!call.principal.tenant) return reference;
  return reference.substr(0, reference.find(':') + 1) + "***";
}

JsonObject secret_object(const Call& call, const Secret& secret) {
  JsonObject json;
  json.add("id", secret.id.public_id())
      .add("masked", secret.masked)
      .add("current", !secret.expires_at.has_value())
      .add("created_at", secret.created_at)
      .add("expires_at", secret.expires_at);
  if (secret.reference) json.add("reference", shown_reference(call, *secret.reference));
  if (secret.public_key) json.add("public_key", *secret.public_key);
  return json;
}

Task<Response> list(Call& call) {
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const auto secrets = co_await registry::list_secrets(*lease, call.services.registry, std::move(of));
  if (!secrets) co_return call.reject(problem_of(secrets.error()));
  std::vector<std::string> items;
  for (const auto& secret : *secrets) items.push_back(secret_object(call, secret).text());
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

Task<Response> rotate(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  registry::Rotation rotation;
  int32_t overlap_seconds = kOverlapDefault;
  Fields fields(*document, "", problems);
  fields.read("overlap_seconds", overlap_seconds, kOverlapRule, kOverlapDefault);
  fields.read("secret", rotation.secret, kSecretRule);
  fields.finish();
  if (rotation.secret && call.principal.tenant && registry::is_reference(*rotation.secret))
    fields.reject("secret",
                  "refers to a secret on the server; keys that are bound to a tenant may not do that");
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  rotation.overlap = std::chrono::seconds(overlap_seconds);

  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const auto rotated = co_await registry::rotate_secret(*lease, call.services.registry, caller, std::move(of),
                                                        std::move(rotation));
  if (!rotated) co_return call.reject(problem_of(rotated.error()));
  JsonObject json = secret_object(call, rotated->secret);
  json.add("secret", rotated->text);
  Response response = Response::json(201, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

Task<Response> remove(Call& call) {
  const auto id = model::SecretId::from_public_id(call.parameter("secret"));
  if (!id) co_return call.reject(problem_of(Rejection{RejectionKind::unknown_secret}));
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const std::optional<Rejection> rejection =
      co_await registry::delete_secret(*lease, caller, std::move(of), *id);
  if (rejection) co_return call.reject(problem_of(*rejection));
  co_return Response::empty(204);
}

}  // namespace

void add_secret_routes(Routes& routes) {
  const std::string all = "/v1/tenants/{tenant}/endpoints/{endpoint}/secrets";
  routes.add(Method::get, all, Access::customer, list);
  const RouteOptions in_force{.changes_sending = true};
  routes.add(Method::post, all + "/rotate", Access::customer, rotate, in_force);
  routes.add(Method::delete_, all + "/{secret}", Access::customer, remove, in_force);
}

}  // namespace postrider::api
