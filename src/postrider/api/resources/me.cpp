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

// Of the person or program that calls.
struct Description {
  std::optional<std::string> key_id, description, owner;
  std::optional<base::Timestamp> expires_at;
};

// A customer whose session was opened by a link does not see whose key created the link.
Task<Description> describe(const Call& call) {
  const registry::Principal& principal = call.principal;
  const auto& session = principal.session;
  if (session && session->link)
    co_return Description{std::nullopt, std::nullopt, session->label, session->expires_at};
  registry::Within within = principal.tenant;
  const pg::Pool::Handle lease = co_await call.database();
  const registry::KeyResult key = co_await registry::find_api_key(*lease, principal.key, std::move(within));
  if (!key) throw CallRejected(unauthorized(NotAuthenticated::key_invalid));  // deleted since the call began
  const auto expires_at = session ? std::optional(session->expires_at) : key->settings.expires_at;
  co_return Description{principal.key.public_id(), key->settings.description, key->settings.owner,
                        expires_at};
}

Task<Response> show(Call& call) {
  const registry::Principal& principal = call.principal;
  const auto& session = principal.session;
  const Description description = co_await describe(call);
  JsonObject json;
  json.add("kind", session ? registry::label(session->kind) : registry::label(principal.kind))
      .add("key_id", description.key_id)
      .add("role", registry::label(principal.role))
      .add("access", principal.is_read_only ? "read" : "manage")
      .add("tenant_id", principal.tenant)
      .add("payloads", principal.sees_payloads)
      .add("capabilities", capabilities_of(principal))
      .add("description", description.description)
      .add("owner", description.owner)
      .add("preview", session && session->is_preview)
      .add("rate_per_second", principal.rate_per_second)
      .add("expires_at", description.expires_at)
      .add("csrf_token", call.credential->csrf_token)
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
