// /portal/session: opens the portal with a one-time link, and signs out.
#include <utility>

#include "postrider/api/resources/sign_in.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/web/portal_links.hpp"

namespace postrider::api {

namespace {

using registry::SessionKind;
using web::Visit;

constexpr TextRule kTokenRule{.bytes_max = 512};

Response signed_in(const web::OpenedPortal& opened, web::Transport transport) {
  const bool is_embedded = opened.origin.has_value();
  std::optional<std::string> session_token;
  if (is_embedded) session_token = opened.session.token;
  JsonObject json;
  json.add("path", "/portal" + opened.path.value_or(""))
      .add("tenant_id", opened.tenant)
      .add("expires_at", opened.session.expires_at)
      .add("origin", opened.origin)
      .add("session_token", session_token);
  Response response = Response::json(200, json.text());
  if (!is_embedded)
    response.header("set-cookie", web::set_cookie(SessionKind::portal, transport, opened.session.token,
                                                  web::portal_limits.total));
  response.header("cache-control", "no-store");
  return response;
}

Task<Response> create(Call& call) {
  const Visit visit = web::visit_of(call.request, call.services.config.public_url);
  if (const auto rejected = problem_of(visit)) co_return call.reject(*rejected);
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::string token;
  Fields fields(*document, "", problems);
  fields.require("token");
  fields.read("token", token, kTokenRule);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const SignInAttempt attempt(call);
  if (const auto rejected = attempt.rejection()) co_return call.reject(*rejected);
  registry::Caller caller = visitor_of(call);
  std::optional<web::OpenedPortal> opened;
  {
    const pg::Pool::Handle lease = co_await call.database();
    opened = co_await web::follow_portal_link(*lease, std::move(caller), std::move(token));
  }
  if (!opened) {
    attempt.note_failure();
    co_return call.reject(wrong_link());
  }
  if (!opened->origin) co_await end_earlier_session(call, SessionKind::portal);
  co_return signed_in(*opened, visit.transport);
}

}  // namespace

void add_portal_session_routes(Routes& routes) {
  routes.add(Method::post, "/portal/session", Access::everyone, create, {.body_bytes_max = 4 << 10});
  routes.add(Method::delete_, "/portal/session", Access::authenticated, sign_out,
             {.bound_keys = BoundKeys::confined});
}

}  // namespace postrider::api
