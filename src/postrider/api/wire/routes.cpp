#include "postrider/api/wire/routes.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/api/wire/conditional.hpp"
#include "postrider/api/wire/cursor_seal.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/rate_fields.hpp"

namespace postrider::api {

namespace {

using registry::Role;

constexpr int kTriesMax = 3;

// The rules of a route: who may call it, and when it responds.
struct Policy {
  Access access;
  BoundKeys bound_keys;
  bool changes_sending;
};

constexpr Role kRolesUpwards[] = {Role::reader, Role::publisher, Role::customer, Role::operator_,
                                  Role::admin};

// "customer, operator or admin"
std::string roles_with(Access access) {
  std::vector<std::string_view> roles;
  for (const Role role : kRolesUpwards)
    if (allows(role, access)) roles.push_back(registry::label(role));
  std::string text;
  for (size_t i = 0; i < roles.size(); ++i)
    text += (i == 0 ? "" : i + 1 == roles.size() ? " or " : ", ") + std::string(roles[i]);
  return text;
}

std::string missing_role(const registry::Principal& principal, Access access) {
  if (principal.is_read_only && allows(principal.role, access))
    return principal.session && principal.session->link
               ? "This session is read-only; this operation needs a link with the access `manage`."
               : "This token is read-only; this operation needs a token with the access `manage`.";
  const std::string allowed = roles_with(access);
  const Role role = principal.role;
  return "This operation needs an API key with the role " + allowed + "; this key has the role " +
         std::string(registry::label(role)) + ".";
}

std::string bound_key(const model::TenantId& tenant) {
  return "This operation concerns all tenants; this API key is bound to the tenant " + tenant + ".";
}

// The problem if the principal may not call this route.
std::optional<http::Problem> rejection(const Call& call, const Policy& policy) {
  if (call.principal.tenant && policy.bound_keys == BoundKeys::by_path) {
    const bool has_tenant =
        !call.request.path_parameters.empty() && call.request.path_parameters.front().name == "tenant";
    if (!has_tenant) return forbidden(bound_key(*call.principal.tenant));
    if (call.tenant() != *call.principal.tenant) return unknown("tenant");
  }
  if (!allows(call.principal, policy.access)) return forbidden(missing_role(call.principal, policy.access));
  if (policy.access == Access::operators && !call.principal.is_operator()) return operators_only();
  return std::nullopt;
}

http::Problem too_many_requests() {
  return problem(429, "too-fast", "The rate limit of this API key is exceeded.");
}

using Allowance = base::RateLimiter::Allowance;

// Takes one request from the key's rate; false if there is none left. Keys without a limit cost nothing here.
bool take_turn(const Call& call, std::optional<Allowance>& left) {
  base::RateLimiter* rates = call.services.key_rates;
  if (!rates || !call.principal.rate_per_second) return true;
  const std::string key = call.principal.credential_id();
  const base::SteadyTime now = base::BootClock::now();
  const bool is_first = !rates->allowance(key, now);
  rates->set_rate(key, call.principal.rate_per_second, now);  // the first time this takes one itself
  const bool is_taken = is_first || rates->try_take(key, now);
  left = rates->allowance(key, now);
  return is_taken;
}

// Runs the handler of a list with its cursor opened, and seals the next one.
Task<Response> run_list(Call& call, CallHandler handler) {
  const CursorSeal seal = CursorSeal::of(call.services.registry.keys, call.request, call.principal.tenant);
  if (!call.is_cursor_open) seal.open_cursor(call.request);
  call.is_cursor_open = true;
  Response response = co_await handler(call);
  seal.seal_next_cursor(response);
  drop_body_if_known(response, call.request);
  co_return response;
}

Task<Response> run(Call& call, CallHandler handler) {
  const Method method = call.request.method;
  return method == Method::get || method == Method::head ? run_list(call, handler) : handler(call);
}

Response reject(const Call& call, const http::Problem& problem) {
  Response response = call.reject(problem);
  if (problem.status == 401) response.header("www-authenticate", "Bearer realm=\"postrider\"");
  return response;
}

// Identifies the caller. Returns a response if the caller may not use the route. Needs only the request head.
Task<std::optional<Response>> identify(Call& call, Policy policy) {
  if (policy.access == Access::everyone) co_return std::nullopt;
  const auto credential = find_credential(call.request);
  if (!credential) co_return reject(call, unauthorized(credential.error()));
  call.credential = *credential;
  const std::optional<registry::Principal> principal = co_await authenticate(call.services, *credential);
  if (!principal) co_return reject(call, unauthorized(NotAuthenticated::key_invalid));
  if (const auto problem = find_forgery(call.request, *credential, call.services.config))
    co_return call.reject(*problem);
  call.principal = *principal;
  call.request.is_authenticated = true;
  if (const auto problem = rejection(call, policy)) co_return call.reject(*problem);
  co_return std::nullopt;
}

// Those in the path: one endpoint, or all of a tenant.
registry::ChangedEndpoints changed_endpoints(const Call& call) {
  registry::ChangedEndpoints changed{.tenant = call.tenant(), .endpoint = {}};
  for (const auto& parameter : call.request.path_parameters)
    if (parameter.name == "endpoint") changed.endpoint = parameter.value;
  return changed;
}

// After signing out, a browser must not show pages from its cache.
void keep_out_of_caches(Response& response) {
  for (const auto& [name, value] : response.headers)
    if (name == "cache-control") return;
  response.header("cache-control", "no-store");
}

Task<Response> try_once(Call& call, Policy policy, CallHandler handler) {
  std::optional<Response> rejected = co_await identify(call, policy);
  if (rejected) co_return std::move(*rejected);
  std::optional<Allowance> left;
  const bool has_turn = take_turn(call, left);
  if (!has_turn) {
    Response response = call.reject(too_many_requests());
    add_rate_fields(response, "key", *left);
    co_return response;
  }
  Response response = co_await run(call, handler);
  if (policy.changes_sending && response.status < 300 && call.services.take_effect) {
    registry::ChangedEndpoints changed = changed_endpoints(call);
    co_await call.services.take_effect(std::move(changed));
  }
  if (left) add_rate_fields(response, "key", *left);
  if (call.principal.session) keep_out_of_caches(response);
  co_return response;
}

// Rolled back for a reason that may be gone the next time. A statement that took too long would take as long
// again.
bool is_worth_another_try(const pg::Error& error) {
  return error.kind() == pg::Kind::retry && !is_statement_timeout(error);
}

Task<Response> respond(Services& services, Policy policy, CallHandler handler, http::Request& request) {
  Call call{services, request};
  for (int tries = 1;; ++tries) {
    try {
      co_return co_await try_once(call, policy, handler);
    } catch (const pg::Error& error) {
      if (!is_worth_another_try(error) || tries == kTriesMax) co_return call.reject(problem_of(error));
    } catch (const CallRejected& rejected) {
      co_return reject(call, rejected.problem());
    }
  }
}

// Before a large body is read. The key's rate is not touched: the call itself takes from it.
Task<http::Admission> admit(Services& services, Policy policy, RouteOptions options, http::Request& head) {
  Call call{services, head};
  http::Admission admission;
  try {
    if (options.admit) co_return co_await options.admit(call);
    admission.rejection = co_await identify(call, policy);
    admission.body_bytes_max = options.body_bytes_max;
    if (call.request.is_authenticated)
      admission.owner = call.principal.tenant ? *call.principal.tenant : call.principal.key.public_id();
  } catch (const pg::Error& error) {
    admission.rejection = call.reject(problem_of(error));
  } catch (const CallRejected& rejected) {
    admission.rejection = reject(call, rejected.problem());
  }
  co_return admission;
}

}  // namespace

std::string_view label(Access access) {
  switch (access) {
    case Access::everyone:
      return "everyone";
    case Access::authenticated:
      return "authenticated";
    case Access::read:
      return "read";
    case Access::publish:
      return "publish";
    case Access::customer:
      return "customer";
    case Access::operate:
      return "operate";
    case Access::operators:
      return "operators";
    case Access::administer:
      return "administer";
  }
  return "";
}

bool allows(Role role, Access access) {
  if (access == Access::authenticated) return true;
  switch (role) {
    case Role::admin:
      return true;
    case Role::operator_:
      return access != Access::administer;
    case Role::customer:
      return access == Access::read || access == Access::customer;
    case Role::publisher:
      return access == Access::publish;
    case Role::reader:
      return access == Access::read;
  }
  return false;
}

bool allows(const registry::Principal& principal, Access access) {
  const bool is_reading = access == Access::read || access == Access::authenticated;
  return allows(principal.role, access) && (is_reading || !principal.is_read_only);
}

namespace {

http::Route make_route(Services& services, Policy policy, CallHandler handler, const RouteOptions& options) {
  http::Route route;
  route.handle = [services = &services, policy, handler](http::Request& request) {
    return respond(*services, policy, handler, request);
  };
  route.body_bytes_max = options.body_bytes_max;
  route.admit = [services = &services, policy, options](http::Request& head) {
    return admit(*services, policy, options, head);
  };
  return route;
}

}  // namespace

void Routes::add(Method method, std::string pattern, Access access, CallHandler handler,
                 RouteOptions options) {
  entries_.push_back({method, pattern, access, options.bound_keys});
  const Policy policy{access, options.bound_keys, options.changes_sending};
  http::Route route = make_route(services_, policy, handler, options);
  route.method = method;
  route.pattern = std::move(pattern);
  router_.add(std::move(route));
}

void Routes::add_page(std::string pattern, CallHandler handler) {
  http::Route route = make_route(services_, {Access::everyone, BoundKeys::by_path, false}, handler, {});
  route.method = Method::get;
  route.pattern = std::move(pattern);
  router_.add(std::move(route));
}

}  // namespace postrider::api
