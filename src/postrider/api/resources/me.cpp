// /v1/me: what the caller's credential may do, and on which server.
#include <chrono>
#include <utility>
#include <vector>

#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/base/version.hpp"
#include "postrider/registry/api_keys.hpp"

namespace postrider::api {

namespace {

constexpr Access kLevels[] = {Access::read,    Access::publish,   Access::customer,
                              Access::operate, Access::operators, Access::administer};

// The access levels of the OpenAPI document (`x-access`) that the caller has.
std::vector<std::string> capabilities_of(const registry::Principal& principal) {
  std::vector<std::string> capabilities;
  for (const Access level : kLevels) {
    const bool is_closed = level == Access::operators && !principal.is_operator();
    if (allows(principal, level) && !is_closed) capabilities.emplace_back(label(level));
  }
  return capabilities;
}

double days(std::chrono::seconds span) {
  return std::chrono::duration<double, std::chrono::days::period>(span).count();
}

std::string server_json(const config::Config& config) {
  JsonObject json;
  json.add("version", base::kVersion)
      .add("now", base::wall_now())
      .add("retain_events_days", days(config.retain_events))
      .add("retain_attempts_days", days(config.retain_attempts));
  return json.text();
}

Task<Response> show(Call& call) {
  const registry::Principal& principal = call.principal;
  registry::Within within = principal.tenant;
  const pg::Pool::Lease lease = co_await call.database();
  const registry::KeyResult key = co_await registry::find_api_key(*lease, principal.key, std::move(within));
  if (!key)
    co_return call.reject(unauthorized(NotAuthenticated::key_invalid));  // deleted since the call began
  JsonObject json;
  const auto& session = principal.session;
  const auto expires_at = session ? std::optional(session->expires_at) : key->settings.expires_at;
  std::optional<std::string> csrf_token;
  if (session) csrf_token = call.credential->csrf_token;
  json.add("kind", session ? registry::label(session->kind) : registry::label(principal.kind))
      .add("key_id", principal.key.public_id())
      .add("role", registry::label(principal.role))
      .add("tenant_id", principal.tenant)
      .add("payloads", principal.sees_payloads)
      .add("capabilities", capabilities_of(principal))
      .add("description", key->settings.description)
      .add("owner", key->settings.owner)
      .add("rate_per_second", principal.rate_per_second)
      .add("expires_at", expires_at)
      .add("csrf_token", csrf_token)
      .raw("server", server_json(call.services.config));
  Response response = Response::json(200, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

}  // namespace

void add_me_routes(Routes& routes) {
  routes.add(Method::get, "/v1/me", Access::authenticated, show, {.bound_keys = BoundKeys::confined});
}

}  // namespace postrider::api
