// /console/session: signs a browser in and out with a key or a link. /v1/console-links: links that sign in
// once, without showing the key.
#include <utility>

#include "postrider/api/resources/sign_in.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/web/sessions.hpp"

namespace postrider::api {

namespace {

using registry::SessionKind;
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

http::Problem no_console() {
  return forbidden(
      "A key with the role publisher can only publish events, so there is nothing it could see in the "
      "console. Sign in with a key of the role reader, operator, admin or customer.");
}

Task<std::optional<web::OpenedSession>> open(Call& call, SignIn sign_in) {
  registry::Caller caller = visitor_of(call);
  if (sign_in.link) {
    const pg::Pool::Handle lease = co_await call.database();
    co_return co_await web::follow_console_link(*lease, caller, std::move(*sign_in.link));
  }
  const Credential credential{registry::hash_key(*sign_in.key)};
  const auto principal = co_await authenticate(call.services, credential);
  if (!principal) co_return std::nullopt;
  if (!allows(principal->role, Access::read)) throw CallRejected(no_console());
  const pg::Pool::Handle lease = co_await call.database();
  web::OpenedSession opened = co_await web::open_session(*lease, std::move(caller), *principal);
  co_return opened;
}

// The page: a customer's key opens the portal.
Response signed_in(const web::OpenedSession& opened, web::Transport transport) {
  const bool is_portal = opened.kind == SessionKind::portal;
  const web::SessionLimits limits = is_portal ? web::portal_limits : web::console_limits;
  JsonObject json;
  json.add("path", is_portal ? "/portal" : "/console").add("expires_at", opened.expires_at);
  Response response = Response::json(200, json.text());
  response.header("set-cookie", web::set_cookie(opened.kind, transport, opened.token, limits.total));
  response.header("cache-control", "no-store");
  return response;
}

Task<Response> create(Call& call) {
  const Visit visit = web::visit_of(call.request, call.services.config.public_url);
  if (const auto rejected = problem_of(visit)) co_return call.reject(*rejected);
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  SignIn sign_in = read_sign_in(*document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const SignInAttempt attempt(call);
  if (const auto rejected = attempt.rejection()) co_return call.reject(*rejected);
  const bool is_link = sign_in.link.has_value();
  const auto opened = co_await open(call, std::move(sign_in));
  if (!opened) {
    attempt.note_failure();
    co_return call.reject(is_link ? wrong_link() : wrong_key());
  }
  co_await end_earlier_session(call, opened->kind);
  co_return signed_in(*opened, visit.transport);
}

Task<Response> create_link(Call& call) {
  if (call.principal.session)
    co_return call.reject(forbidden("A link is created with an API key, not from a page that is signed in."));
  if (!allows(call.principal.role, Access::read)) co_return call.reject(no_console());
  const registry::Caller caller = call.caller();
  const model::KeyId key = call.principal.key;
  const pg::Pool::Handle lease = co_await call.database();
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
  routes.add(Method::delete_, "/console/session", Access::authenticated, sign_out, confined);
  routes.add(Method::post, "/v1/console-links", Access::read, create_link, confined);
}

}  // namespace postrider::api
