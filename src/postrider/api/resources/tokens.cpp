// /v1/tenants/{tenant}/tokens: short-lived keys with the rights of a customer.
#include <fmt/format.h>

#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/registry/api_keys.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using registry::ApiKey;
using registry::KeyKind;
using registry::KeyRejection;
using registry::KeyResult;
using registry::KeySettings;

constexpr TextRule kLabelRule{.bytes_max = 128};
constexpr IntegerRule kLifetimeRule{60, 7 * 86'400};

enum class TokenAccess { manage, read };
std::optional<TokenAccess> parse_access(std::string_view text) {
  if (text == "manage") return TokenAccess::manage;
  if (text == "read") return TokenAccess::read;
  return std::nullopt;
}

JsonObject token_object(const ApiKey& token) {
  const KeySettings& settings = token.settings;
  JsonObject json;
  json.add("id", token.id.public_id())
      .add("tenant_id", settings.tenant)
      .add("access", settings.is_read_only ? "read" : "manage")
      .add("payloads", settings.sees_payloads)
      .add("label", settings.owner)
      .add("expires_at", settings.expires_at)
      .add("created_at", token.created_at)
      .add("created_by", token.created_by)
      .add("last_used_at", token.last_used_at);
  return json;
}

// As with keys, a token has no more rights than the key that creates it: it sees payloads only if that key
// does.
KeySettings read_settings(const Call& call, const boost::json::object& document, FieldProblems& problems) {
  KeySettings settings;
  settings.kind = KeyKind::token;
  settings.role = registry::Role::customer;
  settings.tenant = call.tenant();
  settings.sees_payloads = call.principal.sees_payloads;
  settings.rate_per_second = call.principal.rate_per_second;
  TokenAccess access = TokenAccess::manage;
  std::optional<int32_t> lifetime;
  Fields fields(document, "", problems);
  fields.require("expires_in_seconds");
  fields.read("expires_in_seconds", lifetime, kLifetimeRule);
  if (fields.has("expires_in_seconds") && document.at("expires_in_seconds").is_null())
    fields.reject("expires_in_seconds", "is required");
  fields.read<TokenAccess>("access", access, {parse_access, TokenAccess::manage, "manage, read"});
  fields.read("payloads", settings.sees_payloads);
  fields.read("label", settings.owner, kLabelRule);
  if (settings.sees_payloads && !call.principal.sees_payloads)
    fields.reject("payloads", "must be false, because the key that creates it has no access to payloads");
  fields.finish();
  settings.is_read_only = access == TokenAccess::read;
  settings.expires_at = base::wall_now() + std::chrono::seconds(lifetime.value_or(0));
  return settings;
}

http::Problem problem_of(KeyRejection rejection, int tokens_max) {
  switch (rejection) {
    case KeyRejection::unknown_tenant:
      return unknown("tenant");
    case KeyRejection::outlives_its_maker:
      return invalid({{"/expires_in_seconds", "must end before the key that creates the token expires"}});
    case KeyRejection::too_many_keys:
      return problem(
          409, "too-many-tokens",
          fmt::format("The tenant has {} tokens, which is the limit. Revoke tokens that are not used, "
                      "or wait until some expire.",
                      tokens_max));
    case KeyRejection::unknown_key:
      break;
  }
  return unknown("token");
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  KeySettings settings = read_settings(call, *document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const int tokens_max = call.services.config.tokens_per_tenant_max;
  const auto created = co_await registry::create_key(*lease, caller, std::move(settings), tokens_max);
  if (!created) co_return call.reject(problem_of(created.error(), tokens_max));
  JsonObject json = token_object(created->key);
  json.add("token", created->text);
  Response response = Response::json(201, json.text());
  response.header("location", "/v1/tenants/" + call.tenant() + "/tokens/" + created->key.id.public_id());
  response.header("cache-control", "no-store");
  co_return response;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  registry::KeyFilter filter;
  filter.kind = KeyKind::token;
  filter.within = call.tenant();
  filter.limit = query.limit() + 1;
  if (const std::string after = query.after(); !after.empty()) {
    const auto id = model::KeyId::from_public_id(after);
    if (id)
      filter.after = *id;
    else
      query.reject("cursor", "invalid cursor");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const int limit = filter.limit - 1;
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, call.tenant());
  if (!tenant) co_return call.reject(unknown("tenant"));
  const std::vector<ApiKey> tokens = co_await registry::list_keys(*lease, std::move(filter));
  std::vector<PageRow> rows;
  for (const auto& token : tokens) rows.push_back({token.id.public_id(), token_object(token).text()});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  const auto id = model::KeyId::from_public_id(call.parameter("token"));
  if (!id) co_return call.reject(unknown("token"));
  registry::Within within = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const KeyResult found = co_await registry::find_api_key(*lease, *id, std::move(within), KeyKind::token);
  if (!found || found->revoked_at) co_return call.reject(unknown("token"));
  co_return Response::json(200, token_object(*found).text());
}

Task<Response> revoke(Call& call) {
  const auto id = model::KeyId::from_public_id(call.parameter("token"));
  if (!id) co_return call.reject(unknown("token"));
  registry::Within within = call.tenant();
  const registry::Caller caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const KeyResult revoked =
      co_await registry::revoke_key(*lease, caller, *id, std::move(within), KeyKind::token);
  if (!revoked) co_return call.reject(unknown("token"));
  co_return Response::empty(204);
}

}  // namespace

void add_token_routes(Routes& routes) {
  const std::string all = "/v1/tenants/{tenant}/tokens";
  routes.add(Method::post, all, Access::operate, create);
  routes.add(Method::get, all, Access::operate, list);
  routes.add(Method::get, all + "/{token}", Access::operate, show);
  routes.add(Method::delete_, all + "/{token}", Access::operate, revoke);
}

}  // namespace postrider::api
