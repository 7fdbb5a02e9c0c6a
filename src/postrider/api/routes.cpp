#include "postrider/api/routes.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "postrider/api/conditional.hpp"
#include "postrider/api/cursor_seal.hpp"
#include "postrider/api/problems.hpp"
#include "postrider/api/rate_fields.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
using registry::Role;

constexpr size_t kKeyBytesMax = 512;
constexpr int kTriesMax = 3;

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + ('a' - 'A')) : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// The key of "Authorization: Bearer <key>", or nothing if there is none that could be one.
std::optional<std::string_view> bearer_key(const http::Request& request) {
  const auto field = request.header("authorization");
  if (!field) return std::nullopt;
  const size_t space = field->find(' ');
  if (space == std::string_view::npos || !equals_ignoring_case(field->substr(0, space), "bearer"))
    return std::nullopt;
  std::string_view key = field->substr(space + 1);
  while (key.starts_with(' ')) key.remove_prefix(1);
  if (key.empty() || key.size() > kKeyBytesMax) return std::nullopt;
  return key;
}

// Missing, unknown, revoked and expired look the same.
Task<std::optional<registry::Principal>> authenticate(const Call& call) {
  const auto key = bearer_key(call.request);
  if (!key) co_return std::nullopt;
  registry::KeyCache& cache = call.services.keys;
  const registry::KeyHash hash = registry::hash_key(*key);
  const base::SteadyTime now = base::BootClock::now();
  if (const auto known = cache.find(hash, now)) co_return *known;
  const auto generation = cache.generation();
  const pg::Pool::Lease lease = co_await call.database();
  const std::optional<registry::Principal> found = co_await registry::find_key(*lease, hash);
  if (found) cache.keep(hash, {*found, now, generation});
  co_return found;
}

// Who may use a route.
struct Policy {
  Access access;
  BoundKeys bound_keys;
};

// What the principal may not do, or nothing.
std::optional<http::Problem> refusal(const Call& call, const Policy& policy) {
  if (call.principal.tenant && policy.bound_keys == BoundKeys::by_path) {
    const bool has_tenant =
        !call.request.path_parameters.empty() && call.request.path_parameters.front().name == "tenant";
    if (!has_tenant) return forbidden();
    if (call.tenant() != *call.principal.tenant) return unknown_tenant();
  }
  if (!allows(call.principal.role, policy.access)) return forbidden();
  return std::nullopt;
}

http::Problem too_many_requests() {
  http::Problem problem;
  problem.status = 429;
  problem.type = "too-fast";
  problem.detail = "This key has a rate limit, and it is used up.";
  return problem;
}

using Allowance = publish::PublishRates::Allowance;

// Takes one request from the key's rate; false if there is none left. Keys without a limit cost nothing here.
bool take_turn(const Call& call, std::optional<Allowance>& left) {
  publish::PublishRates* rates = call.services.key_rates;
  if (!rates || !call.principal.rate_per_second) return true;
  const std::string key = call.principal.key.outside();
  const base::SteadyTime now = base::BootClock::now();
  const bool is_first = !rates->allowance(key, now);
  rates->learn(key, call.principal.rate_per_second, now);  // the first time this takes one itself
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
  return call.request.method == Method::get ? run_list(call, handler) : handler(call);
}

Task<Response> try_once(Call& call, Policy policy, CallHandler handler) {
  if (policy.access != Access::everyone) {
    const std::optional<registry::Principal> principal = co_await authenticate(call);
    if (!principal) {
      Response response = call.refuse(unauthorized());
      response.header("www-authenticate", "Bearer realm=\"postrider\"");
      co_return response;
    }
    call.principal = *principal;
    if (const auto problem = refusal(call, policy)) co_return call.refuse(*problem);
  }
  std::optional<Allowance> left;
  const bool has_turn = take_turn(call, left);
  if (!has_turn) {
    Response response = call.refuse(too_many_requests());
    add_rate_fields(response, "key", *left);
    co_return response;
  }
  Response response = co_await run(call, handler);
  if (left) add_rate_fields(response, "key", *left);
  co_return response;
}

Task<Response> answer(Services& services, Policy policy, CallHandler handler, http::Request& request) {
  Call call{services, request};
  for (int tries = 1;; ++tries) {
    try {
      co_return co_await try_once(call, policy, handler);
    } catch (const pg::Error& error) {
      // Rolled back for a passing reason: nothing of the call has happened yet.
      if (error.kind() != pg::Kind::retry || tries == kTriesMax) co_return call.refuse(problem_of(error));
    }
  }
}

}  // namespace

bool allows(Role role, Access access) {
  switch (role) {
    case Role::admin:
      return true;
    case Role::operator_:
      return access != Access::administer;
    case Role::publisher:
      return access == Access::publish;
    case Role::reader:
      return access == Access::read;
  }
  return false;
}

registry::Caller Call::caller() const {
  registry::Caller caller;
  caller.kind = registry::ActorKind::key;
  caller.id = principal.key.outside();
  caller.address = request.remote_address;
  caller.request_id = request.id;
  caller.if_match = read_if_match(request);
  return caller;
}

Task<pg::Pool::Lease> Call::database() const {
  // Without a connection a caller learns it soon; with one, it waits its turn.
  const auto patience = services.pool.is_up() ? 5'000ms : 500ms;
  const base::SteadyTime deadline = base::BootClock::now() + patience;
  co_return co_await services.pool.acquire(deadline);
}

void Routes::add(Method method, std::string pattern, Access access, CallHandler handler,
                 RouteOptions options) {
  entries_.push_back({method, pattern, access, options.bound_keys});
  http::Route route;
  route.method = method;
  route.pattern = std::move(pattern);
  const Policy policy{access, options.bound_keys};
  route.handle = [services = &services_, policy, handler](http::Request& request) {
    return answer(*services, policy, handler, request);
  };
  route.body_bytes_max = options.body_bytes_max;
  if (const auto find = options.find_body_bytes_max)
    route.find_body_bytes_max = [services = &services_, find](const http::Request& head, std::string named) {
      return find(*services, head, std::move(named));
    };
  router_.add(std::move(route));
}

}  // namespace postrider::api
