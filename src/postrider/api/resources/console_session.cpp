// /console/session: signs a browser in and out. /v1/console-links: links that sign in once, without showing
// the key.
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/web/cookies.hpp"
#include "postrider/web/sessions.hpp"
#include "postrider/web/sign_in_guard.hpp"

namespace postrider::api {

namespace {

using registry::SessionKind;
using web::Transport;
using web::Visit;

constexpr TextRule kKeyRule{.bytes_max = 512};

struct SignIn {
  std::optional<std::string> key, link;
};

SignIn read_sign_in(const boost::json::object& document, FieldProblems& problems) {
  SignIn sign_in;
  Fields fields(document, "", problems);
  fields.read("key", sign_in.key, kKeyRule);
  fields.read("link", sign_in.link, kKeyRule);
  if (sign_in.key.has_value() == sign_in.link.has_value())
    fields.reject("key", "either key or link is required, not both");
  fields.finish();
  return sign_in;
}

http::Problem wrong_key() {
  return problem(401, "unauthorized", "This key is unknown, expired or revoked.");
}

http::Problem wrong_link() {
  return problem(401, "unauthorized",
                 "This link was used before, has expired, or is incomplete. Create a new one.");
}

http::Problem too_many_failures() {
  return try_later(429, "too-fast", "Too many failed sign-ins from this address. Wait a minute.",
                   std::chrono::seconds(60));
}

http::Problem insecure() {
  return problem(
      403, "insecure-transport",
      "Signing in needs https, because others in the network could read the session. Serve postrider behind "
      "a "
      "proxy with TLS and set public_url to its https:// address. On a loopback address http works.");
}

http::Problem no_console() {
  return forbidden(
      "A key with the role publisher can only publish events, so there is nothing it could see in the "
      "console. Sign "
      "in with a key of the role reader, operator or admin.");
}

std::optional<http::Problem> problem_of(const Visit& visit) {
  if (!visit.is_same_origin) return forbidden("A page of another server cannot sign in here.");
  if (visit.transport == Transport::insecure) return insecure();
  return std::nullopt;
}

registry::Caller caller_of(const Call& call) {
  registry::Caller caller;
  caller.kind = registry::ActorKind::console;
  caller.actor = model::Actor::operator_;
  caller.address = call.request.remote_address;
  caller.request_id = call.request.id;
  return caller;
}

Task<std::optional<web::OpenedSession>> open(Call& call, SignIn sign_in) {
  const registry::Caller caller = caller_of(call);
  if (sign_in.link) {
    const pg::Pool::Lease lease = co_await call.database();
    co_return co_await web::follow_console_link(*lease, caller, std::move(*sign_in.link));
  }
  const Credential credential{registry::hash_key(*sign_in.key)};
  const auto principal = co_await authenticate(call.services, credential);
  if (!principal) co_return std::nullopt;
  if (!allows(principal->role, Access::read)) throw CallRejected(no_console());
  const pg::Pool::Lease lease = co_await call.database();
  web::OpenedSession opened = co_await web::open_console(*lease, caller, principal->key);
  co_return opened;
}

// A session that this browser still has ends when it signs in again.
Task<void> end_earlier_session(Call& call) {
  const auto earlier = web::find_session_token(call.request);
  if (!earlier) co_return;
  const registry::Caller caller = caller_of(call);
  const web::TokenHash hash = web::hash_token(*earlier);
  const pg::Pool::Lease lease = co_await call.database();
  co_await web::end_session(*lease, caller, hash);
}

Task<Response> create(Call& call) {
  const Visit visit = web::visit_of(call.request, call.services.config.public_url);
  if (const auto rejected = problem_of(visit)) co_return call.reject(*rejected);
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  SignIn sign_in = read_sign_in(*document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  web::SignInGuard* guard = call.services.sign_in_guard;
  const std::string address = call.request.remote_address;
  if (guard && !guard->is_open(address, base::BootClock::now())) co_return call.reject(too_many_failures());
  const bool is_link = sign_in.link.has_value();
  const auto opened = co_await open(call, std::move(sign_in));
  if (!opened) {
    if (guard) guard->note_failure(address, base::BootClock::now());
    co_return call.reject(is_link ? wrong_link() : wrong_key());
  }
  co_await end_earlier_session(call);
  JsonObject json;
  json.add("path", "/console").add("expires_at", opened->expires_at);
  Response response = Response::json(200, json.text());
  response.header("set-cookie", web::set_cookie(SessionKind::console, visit.transport, opened->token,
                                                web::console_limits.total));
  response.header("cache-control", "no-store");
  co_return response;
}

Task<Response> remove(Call& call) {
  const Visit visit = web::visit_of(call.request, call.services.config.public_url);
  if (const auto rejected = problem_of(visit)) co_return call.reject(*rejected);
  if (!call.principal.session) co_return Response::empty(204);  // a key has none
  const registry::Caller caller = call.caller();
  const registry::KeyHash hash = call.credential->key;
  const pg::Pool::Lease lease = co_await call.database();
  co_await web::end_session(*lease, caller, hash);
  call.services.sessions.clear();
  call.services.watches.wake();
  Response response = Response::empty(204);
  response.header("set-cookie", web::clear_cookie(SessionKind::console, visit.transport));
  response.header("clear-site-data", "\"storage\"");
  co_return response;
}

Task<Response> create_link(Call& call) {
  if (call.principal.session)
    co_return call.reject(forbidden("A link is created with an API key, not from a page that is signed in."));
  if (!allows(call.principal.role, Access::read)) co_return call.reject(no_console());
  const registry::Caller caller = call.caller();
  const model::KeyId key = call.principal.key;
  const pg::Pool::Lease lease = co_await call.database();
  const web::CreatedLink created = co_await web::create_console_link(*lease, caller, key);
  JsonObject json;
  json.add("id", created.id)
      .add("url", call.services.config.public_url + "/console/enter#l=" + created.token)
      .add("expires_at", created.expires_at);
  Response response = Response::json(201, json.text());
  response.header("cache-control", "no-store");
  co_return response;
}

}  // namespace

void add_console_session_routes(Routes& routes) {
  const RouteOptions confined{.bound_keys = BoundKeys::confined};
  routes.add(Method::post, "/console/session", Access::everyone, create, {.body_bytes_max = 4 << 10});
  routes.add(Method::delete_, "/console/session", Access::authenticated, remove, confined);
  routes.add(Method::post, "/v1/console-links", Access::read, create_link, confined);
}

}  // namespace postrider::api
