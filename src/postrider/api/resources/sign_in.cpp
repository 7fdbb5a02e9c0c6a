#include "postrider/api/resources/sign_in.hpp"

#include "postrider/web/sessions.hpp"
#include "postrider/web/sign_in_guard.hpp"

namespace postrider::api {

namespace {

using web::Transport;
using web::Visit;

http::Problem insecure() {
  return problem(
      403, "insecure-transport",
      "Signing in needs https, because others in the network could read the session. Serve postrider behind "
      "a "
      "proxy with TLS and set public_url to its https:// address. On a loopback address http works.");
}

}  // namespace

std::optional<http::Problem> problem_of(const Visit& visit) {
  if (!visit.is_same_origin) return forbidden("A page of another server cannot sign in here.");
  if (visit.transport == Transport::insecure) return insecure();
  return std::nullopt;
}

http::Problem wrong_link() {
  return problem(401, "unauthorized",
                 "This link was used before, has expired, or is incomplete. Create a new one.");
}

registry::Caller visitor_of(const Call& call) {
  registry::Caller caller;
  caller.kind = registry::ActorKind::console;
  caller.actor = model::Actor::operator_;
  caller.address = call.request.remote_address;
  caller.request_id = call.request.id;
  return caller;
}

SignInAttempt::SignInAttempt(const Call& call)
    : guard_(call.services.sign_in_guard), address_(call.request.remote_address) {}

std::optional<http::Problem> SignInAttempt::rejection() const {
  if (!guard_ || guard_->is_open(address_, base::BootClock::now())) return std::nullopt;
  return try_later(429, "too-fast", "Too many failed sign-ins from this address. Wait a minute.",
                   std::chrono::seconds(60));
}

void SignInAttempt::note_failure() const {
  if (guard_) guard_->note_failure(address_, base::BootClock::now());
}

Task<void> end_earlier_session(Call& call, registry::SessionKind kind) {
  const auto earlier = web::find_session_token(call.request, kind);
  if (!earlier) co_return;
  const registry::Caller caller = visitor_of(call);
  const web::TokenHash hash = web::hash_token(*earlier);
  const pg::Pool::Handle lease = co_await call.database();
  co_await web::end_session(*lease, caller, hash);
}

Task<Response> sign_out(Call& call) {
  const Visit visit = web::visit_of(call.request, call.services.config.public_url);
  if (const auto rejected = problem_of(visit)) co_return call.reject(*rejected);
  if (!call.principal.session) co_return Response::empty(204);  // a key has none
  const registry::Caller caller = call.caller();
  const registry::KeyHash hash = call.credential->key;
  const registry::SessionKind kind = call.principal.session->kind;
  const pg::Pool::Handle lease = co_await call.database();
  co_await web::end_session(*lease, caller, hash);
  call.services.sessions.clear();
  call.services.watches.wake();
  Response response = Response::empty(204);
  if (call.credential->csrf_token)  // it is in a cookie
    response.header("set-cookie", web::clear_cookie(kind, visit.transport));
  response.header("clear-site-data", "\"storage\"");
  co_return response;
}

}  // namespace postrider::api
