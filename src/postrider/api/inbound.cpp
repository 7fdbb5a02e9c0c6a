// POST /in/{source}: inbound webhooks. There is no API key: the signature is the authentication, and whoever
// fails it learns no more than that.
#include <cstdlib>
#include <exception>
#include <utility>

#include "postrider/api/problems.hpp"
#include "postrider/api/routes.hpp"
#include "postrider/inbox/receiver.hpp"
#include "postrider/inbox/rejections.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
using inbox::RejectReason;
using inbox::Stored;

constexpr size_t kBodyBytesMax = 25 << 20;  // of any source; a source's own limit is usually less

http::Problem problem(int status, std::string type, std::string detail) {
  http::Problem what;
  what.status = status;
  what.type = std::move(type);
  what.detail = std::move(detail);
  if (status == 503) what.retry_after = std::chrono::seconds(1);
  return what;
}

http::Problem problem_of(const inbox::Rejection& rejection) {
  switch (rejection.reason) {
    case RejectReason::unknown_source:
      return problem(404, "unknown-source", "There is no such source.");
    case RejectReason::body_too_large:
      return problem(413, "too-large", "The body is too large.");
    default:
      return problem(401, "unauthorized", "The request could not be verified.");
  }
}

Response reject(const Call& call, const inbox::Rejection& rejection) {
  inbox::Rejections* rejections = call.services.rejections;
  if (rejections) rejections->count(call.parameter("source"), rejection, call.services.registry.ids.now());
  return call.refuse(problem_of(rejection));
}

// Twilio takes the answer for instructions: none.
Response accepted(inbox::Provider provider) {
  if (provider != inbox::Provider::twilio) return Response::json(200, R"({"status":"accepted"})");
  Response response;
  response.content_type = "text/xml";
  response.body = "<Response/>";
  return response;
}

Response answer(const Call& call, Stored stored, inbox::Provider provider) {
  switch (stored) {
    case Stored::stored:
    case Stored::duplicate:
      return accepted(provider);
    case Stored::unacceptable:
      return call.refuse(problem(400, "malformed", "The message has content that cannot be stored."));
    case Stored::overloaded:
      return call.refuse(problem(503, "overloaded", "Too many messages are waiting to be stored."));
    case Stored::unavailable:
      break;
  }
  return call.refuse(problem(503, "unavailable", "The database cannot be used at the moment."));
}

Task<inbox::SourcePtr> find_source(Services& services, std::string id) {
  const auto found = services.sources.find(id, base::BootClock::now());
  if (found.is_known) co_return found.source;
  const auto patience = services.pool.is_up() ? 5'000ms : 500ms;
  const base::SteadyTime deadline = base::BootClock::now() + patience;
  const pg::Pool::Lease lease = co_await services.pool.acquire(deadline);
  co_return co_await services.sources.load(*lease, services.registry.keys, std::move(id));
}

// The source's own limit, so that too large a body is refused by its content-length, or while it comes, and
// not kept until it is whole. An unknown source gets the server's limit and is told 404 then.
Task<size_t> find_limit(Services& services, const http::Request& head, std::string named) {
  inbox::SourcePtr source;
  try {
    source = co_await find_source(services, named);
  } catch (const std::exception&) {
    co_return kBodyBytesMax;  // whatever it is, it is told to come again
  }
  if (!source) co_return 0;
  const auto limit = static_cast<size_t>(source->source.settings.body_bytes_max);
  const auto announced = head.header("content-length");
  if (announced && services.rejections && std::strtoull(std::string(*announced).c_str(), nullptr, 10) > limit)
    services.rejections->count(
        named, {RejectReason::body_too_large, "announced: " + std::string(*announced) + " bytes"},
        services.registry.ids.now());
  co_return limit;
}

// Before anything else of it is believed.
std::optional<inbox::Rejection> judge(const inbox::LoadedSource& source, const inbox::Arrival& arrival) {
  if (arrival.body.size() > static_cast<size_t>(source.source.settings.body_bytes_max))
    return inbox::unfit_body(source, arrival.body);
  const auto keys = source.keys_at(arrival.now);
  if (auto rejection = inbox::verify(source.how, keys, arrival)) return rejection;
  return inbox::unfit_body(source, arrival.body);
}

Task<Response> receive(Call& call) {
  std::string named = call.parameter("source");
  const inbox::SourcePtr source = co_await find_source(call.services, std::move(named));
  if (!source) co_return reject(call, {RejectReason::unknown_source, ""});
  if (!source->source.can_verify())
    co_return call.refuse(problem(503, "unreadable-source", "How this source signs cannot be read."));
  inbox::Arrival arrival;
  arrival.body = call.request.body;
  arrival.fields = call.request.fields;
  arrival.public_url = call.services.config.public_url + std::string(call.request.target);
  arrival.now = call.services.registry.ids.now();
  if (const auto rejection = judge(*source, arrival)) co_return reject(call, *rejection);
  const inbox::Provider provider = source->source.provider;
  if (provider == inbox::Provider::slack) {
    if (auto challenge = inbox::slack_challenge(arrival))
      co_return Response::text(200, std::move(*challenge));
  }
  auto message = inbox::make_message(*source, arrival);
  const Stored stored = co_await call.services.receiver->store(std::move(message));
  co_return answer(call, stored, provider);
}

}  // namespace

void add_inbound_routes(Routes& routes) {
  if (routes.services().receiver == nullptr) return;
  routes.add(Method::post, "/in/{source}", Access::everyone, receive, {.find_body_bytes_max = find_limit});
}

}  // namespace postrider::api
