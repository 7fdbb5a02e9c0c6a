// /v1/keys
#include <fmt/format.h>

#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/api_keys.hpp"

namespace postrider::api {

namespace {

using registry::ApiKey;
using registry::KeyKind;
using registry::KeyResult;
using registry::KeySettings;
using registry::Role;

constexpr TextRule kDescriptionRule{.bytes_max = 256};
constexpr TextRule kOwnerRule{.bytes_max = 128};
constexpr TextRule kTenantRule{.bytes_max = 64};
constexpr TextRule kTimeRule{.bytes_max = 64};
constexpr NumberRule kRateRule{1'000'000};

JsonObject key_object(const ApiKey& key) {
  const KeySettings& settings = key.settings;
  JsonObject json;
  json.add("id", key.id.public_id())
      .add("role", registry::label(settings.role))
      .add("tenant_id", settings.tenant)
      .add("payloads", settings.sees_payloads)
      .add("description", settings.description)
      .add("owner", settings.owner)
      .add("rate_per_second", settings.rate_per_second)
      .add("expires_at", settings.expires_at)
      .add("created_at", key.created_at)
      .add("created_by", key.created_by)
      .add("revoked_at", key.revoked_at)
      .add("last_used_at", key.last_used_at);
  return json;
}

void read_role(Fields& fields, Role& role) {
  fields.require("role");
  std::string word;
  fields.read("role", word, {.bytes_max = 64});
  const auto parsed = registry::parse_role(word);
  if (parsed)
    role = *parsed;
  else if (!word.empty())
    fields.reject("role", "must be one of: admin, operator, customer, publisher, reader");
}

void read_expiry(Fields& fields, std::optional<base::Timestamp>& expires_at) {
  std::optional<std::string> text;
  fields.read("expires_at", text, kTimeRule);
  if (!text) return;
  expires_at = base::parse_rfc3339(*text);
  if (!expires_at)
    fields.reject("expires_at", time_rule);
  else if (*expires_at <= base::wall_now())
    fields.reject("expires_at", "must be in the future");
}

// A key gives others no more than it has itself: its tenant, and payloads only if it sees them.
KeySettings read_settings(const boost::json::object& document, const registry::Principal& maker,
                          FieldProblems& problems) {
  KeySettings settings;
  settings.tenant = maker.tenant;
  settings.sees_payloads = maker.sees_payloads;
  Fields fields(document, "", problems);
  read_role(fields, settings.role);
  fields.read("tenant_id", settings.tenant, kTenantRule);
  fields.read("payloads", settings.sees_payloads);
  fields.read("description", settings.description, kDescriptionRule);
  fields.read("owner", settings.owner, kOwnerRule);
  fields.read("rate_per_second", settings.rate_per_second, kRateRule);
  read_expiry(fields, settings.expires_at);
  if (settings.role == Role::customer && !settings.tenant)
    fields.reject("tenant_id", "is required: a customer's key is bound to its tenant");
  if (maker.tenant && settings.tenant != maker.tenant)
    fields.reject("tenant_id", "must be the tenant that this key is bound to");
  if (maker.rate_per_second &&
      (!settings.rate_per_second || *settings.rate_per_second > *maker.rate_per_second))
    fields.reject("rate_per_second", fmt::format("must be at most {}, the limit of the key that creates it",
                                                 *maker.rate_per_second));
  if (settings.sees_payloads && !maker.sees_payloads)
    fields.reject("payloads", "must be false, because the key that creates it has no access to payloads");
  fields.finish();
  return settings;
}

http::Problem too_many_keys(int limit) {
  return problem(
      409, "too-many-keys",
      fmt::format("The tenant has {} keys, which is the limit. Revoke keys that are not used.", limit));
}

http::Problem problem_of(registry::KeyRejection rejection) {
  if (rejection == registry::KeyRejection::unknown_tenant) return invalid({{"/tenant_id", "does not exist"}});
  if (rejection == registry::KeyRejection::outlives_its_maker)
    return invalid({{"/expires_at", "must not be later than that of the key that creates it"}});
  return unknown("key");
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  KeySettings settings = read_settings(*document, call.principal, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const int keys_max = call.services.config.keys_per_tenant_max;
  const auto created = co_await registry::create_key(*lease, caller, std::move(settings), keys_max);
  if (!created && created.error() == registry::KeyRejection::too_many_keys)
    co_return call.reject(too_many_keys(keys_max));
  if (!created) co_return call.reject(problem_of(created.error()));
  JsonObject json = key_object(created->key);
  json.add("key", created->text);
  Response response = Response::json(201, json.text());
  response.header("location", "/v1/keys/" + created->key.id.public_id());
  response.header("cache-control", "no-store");
  co_return response;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  registry::KeyFilter filter;
  filter.within = query.value("tenant");
  filter.limit = query.limit() + 1;
  if (const std::string after = query.after(); !after.empty()) {
    const auto id = model::KeyId::from_public_id(after);
    if (id)
      filter.after = *id;
    else
      query.reject("cursor", "invalid cursor");
  }
  if (call.principal.tenant) {
    if (filter.within && filter.within != call.principal.tenant)
      query.reject("tenant", "this key is bound to another tenant");
    filter.within = call.principal.tenant;
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const int limit = filter.limit - 1;
  const pg::Pool::Handle lease = co_await call.database();
  const std::vector<ApiKey> keys = co_await registry::list_keys(*lease, std::move(filter));
  std::vector<PageRow> rows;
  for (const auto& key : keys) rows.push_back({key.id.public_id(), key_object(key).text()});
  co_return page(std::move(rows), limit);
}

http::Problem unknown_key() {
  return problem_of(registry::KeyRejection::unknown_key);
}

Task<Response> show(Call& call) {
  const auto id = model::KeyId::from_public_id(call.parameter("key"));
  if (!id) co_return call.reject(unknown_key());
  registry::Within within = call.principal.tenant;
  const pg::Pool::Handle lease = co_await call.database();
  const KeyResult found = co_await registry::find_api_key(*lease, *id, std::move(within), KeyKind::key);
  if (!found) co_return call.reject(problem_of(found.error()));
  co_return Response::json(200, key_object(*found).text());
}

Task<Response> revoke(Call& call) {
  const auto id = model::KeyId::from_public_id(call.parameter("key"));
  if (!id) co_return call.reject(unknown_key());
  registry::Within within = call.principal.tenant;
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const KeyResult revoked = co_await registry::revoke_key(*lease, caller, *id, std::move(within));
  if (!revoked) co_return call.reject(problem_of(revoked.error()));
  co_return Response::empty(204);
}

}  // namespace

void add_key_routes(Routes& routes) {
  const RouteOptions confined{.bound_keys = BoundKeys::confined};
  routes.add(Method::post, "/v1/keys", Access::administer, create, confined);
  routes.add(Method::get, "/v1/keys", Access::administer, list, confined);
  routes.add(Method::get, "/v1/keys/{key}", Access::administer, show, confined);
  routes.add(Method::delete_, "/v1/keys/{key}", Access::administer, revoke, confined);
}

}  // namespace postrider::api
