#include <chrono>
#include <optional>
#include <utility>

#include "postrider/api/wire/conditional.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;

// Links of the pool that the calls of one holder may have at once. One tenant's slow statements leave the
// others a link, and the machine a core.
constexpr size_t kLinksOfTenant = 1;
constexpr size_t kLinksOfKey = 2;
// The part of the time for which the calls of one tenant may use their link. A link in use keeps a core of
// the database busy, which then commits other tenants' events later.
constexpr double kTimeShareOfTenant = 0.25;
constexpr auto kRestMax = 4s;  // less than the patience below, so that a call after a slow one still succeeds

http::Problem too_many_calls(const registry::Principal& principal) {
  http::Problem problem;
  problem.status = 429;
  problem.type = "too-many-calls";
  problem.detail = std::string("Too many requests of this ") + (principal.tenant ? "tenant" : "API key") +
                   " are waiting for the database. Send fewer at the same time.";
  problem.retry_after = 1s;
  return problem;
}

}  // namespace

registry::Caller Call::caller() const {
  registry::Caller caller;
  caller.kind = registry::ActorKind::key;
  if (principal.session)
    caller.kind = principal.session->kind == registry::SessionKind::console ? registry::ActorKind::console
                                                                            : registry::ActorKind::portal;
  caller.actor = principal.is_bound() ? model::Actor::customer : model::Actor::operator_;
  caller.id = principal.key.public_id();
  if (principal.session && principal.session->link) {
    caller.id = principal.session->link->public_id();
    caller.name = principal.session->label;
  }
  caller.address = request.remote_address;
  caller.request_id = request.id;
  caller.if_match = read_if_match(request);
  return caller;
}

Task<pg::Pool::Handle> Call::database() const {
  const bool is_allowed = co_await has_valid_key(*this);
  if (!is_allowed) throw CallRejected(unauthorized(NotAuthenticated::key_invalid));
  const std::string holder = holder_of(principal);
  const std::string key = principal.credential_id();
  Shares& by_holder = services.waiting_by_holder;
  Shares& by_key = services.waiting_by_key;
  const bool has_room = by_holder.room_for(holder) == Shares::Room::free &&
                        (!principal.tenant || by_key.room_for(key) == Shares::Room::free);
  if (!has_room) throw CallRejected(too_many_calls(principal));
  const Shares::Place of_holder = by_holder.take(holder), of_key = by_key.take(key);
  // Without a connection a caller learns it soon; with one, it waits its turn.
  const auto patience = services.pool.is_up() ? 5'000ms : 500ms;
  const base::SteadyTime deadline = base::BootClock::now() + patience;
  pg::Pool::Claim claim{.owner = holder,
                        .links_max = principal.tenant ? kLinksOfTenant : kLinksOfKey,
                        .time_share = principal.tenant ? kTimeShareOfTenant : 1,
                        .rest_max = kRestMax};
  std::optional<pg::Error> failure;
  try {
    pg::Pool::Handle lease = co_await services.pool.acquire(deadline, std::move(claim));
    co_return lease;
  } catch (const pg::Error& error) {
    failure = error;
  }
  // A connection that was just released is lent again first. Then it is known which calls this one waited
  // for.
  runtime::Yield later{services.loop};
  co_await later;
  if (services.pool.is_occupied_by(holder))
    throw CallRejected(too_many_calls(principal));  // calls of its own
  throw pg::Error(*failure);
}

}  // namespace postrider::api
