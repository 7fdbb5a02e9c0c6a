// POST /in/{source}: inbound webhooks. There is no API key: the signature is the authentication. A response
// to a wrong signature says nothing else.
#include <cstdlib>
#include <utility>

#include "postrider/api/wire/authenticate.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/inbox/receiver.hpp"
#include "postrider/inbox/rejections.hpp"

namespace postrider::api {

namespace {

using inbox::RejectReason;
using inbox::Stored;

constexpr size_t kVerifiedOnLoopBytesMax = 64 << 10;

http::Problem problem_of(const inbox::InboundRejection& rejection) {
  switch (rejection.reason) {
    case RejectReason::unknown_source:
      return unknown("source");
    case RejectReason::body_too_large:
      return problem(413, content_too_large, "The request body is larger than this source accepts.");
    default:
      return problem(401, "unauthorized", "The request could not be verified.");
  }
}

Response reject(const Call& call, const inbox::InboundRejection& rejection) {
  inbox::Rejections* rejections = call.services.rejections;
  if (rejections) rejections->count(call.parameter("source"), rejection, call.services.registry.ids.now());
  return call.reject(problem_of(rejection));
}

// The sender gets no error: a provider would send it again.
void count_dropped(const Call& call, const std::string& came_as, base::Timestamp at) {
  if (call.services.rejections == nullptr) return;
  call.services.rejections->count_dropped(call.parameter("source"),
                                          came_as.empty() ? "has no ID" : "came as " + came_as, at);
}

// Twilio takes the response for instructions: none.
Response accepted(inbox::Provider provider) {
  if (provider != inbox::Provider::twilio) return Response::json(200, R"({"status":"accepted"})");
  Response response;
  response.content_type = "text/xml";
  response.body = "<Response/>";
  return response;
}

Response respond(const Call& call, Stored stored, inbox::Provider provider) {
  switch (stored) {
    case Stored::stored:
    case Stored::duplicate:
    case Stored::duplicate_content:
      return accepted(provider);
    case Stored::unacceptable:
      return call.reject(problem(400, "malformed", "The message has content that cannot be stored."));
    case Stored::overloaded:
      return call.reject(try_later(503, "overloaded", "Too many messages are waiting to be stored."));
    case Stored::unavailable:
      break;
  }
  return call.reject(try_later(503, "unavailable", "The database is unavailable. Try again later."));
}

// By the head alone: the source must exist, and its own limit applies to the body.
Task<http::Admission> admit(Call& call) {
  http::Admission admission;
  std::string named = call.parameter("source");
  const inbox::SourcePtr source = co_await find_source(call.services, named);
  if (!source) {
    admission.rejection = reject(call, {RejectReason::unknown_source, ""});
    co_return admission;
  }
  admission.body_bytes_max = static_cast<size_t>(source->source.settings.body_bytes_max);
  const auto announced = call.request.header("content-length");
  if (announced && std::strtoull(std::string(*announced).c_str(), nullptr, 10) > admission.body_bytes_max)
    admission.rejection =
        reject(call, {RejectReason::body_too_large, "announced: " + std::string(*announced) + " bytes"});
  co_return admission;
}

// Before anything else of it is believed.
std::optional<inbox::InboundRejection> check(const inbox::LoadedSource& source,
                                             const inbox::Arrival& arrival) {
  if (arrival.body.size() > static_cast<size_t>(source.source.settings.body_bytes_max))
    return inbox::invalid_body(source, arrival.body);
  const auto keys = source.keys_at(arrival.now);
  if (auto rejection = inbox::verify(source.how, keys, arrival)) return rejection;
  return inbox::invalid_body(source, arrival.body);
}

// The sender chooses how many bytes and signatures there are to hash, before it has proven anything. Other
// requests do not wait for that.
Task<std::optional<inbox::InboundRejection>> check_large(const Call& call, const inbox::LoadedSource& source,
                                                         const inbox::Arrival& arrival) {
  std::optional<inbox::InboundRejection> rejection;
  runtime::OnWorker work(*call.services.worker, call.services.loop,
                         [&] { rejection = check(source, arrival); });
  co_await work;
  co_return rejection;
}

Task<Response> receive(Call& call) {
  std::string named = call.parameter("source");
  const inbox::SourcePtr source = co_await find_source(call.services, std::move(named));
  if (!source) co_return reject(call, {RejectReason::unknown_source, ""});
  if (!source->source.can_verify())
    co_return call.reject(
        try_later(503, "unreadable-source", "The signature settings of this source cannot be read."));
  inbox::Arrival arrival;
  arrival.body = call.request.body;
  arrival.fields = call.request.fields;
  arrival.public_url = call.services.config.public_url + std::string(call.request.target);
  arrival.now = call.services.registry.ids.now();
  std::optional<inbox::InboundRejection> rejection;
  if (call.services.worker != nullptr && arrival.body.size() > kVerifiedOnLoopBytesMax)
    rejection = co_await check_large(call, *source, arrival);
  else
    rejection = check(*source, arrival);
  if (rejection) co_return reject(call, *rejection);
  call.request.is_authenticated = true;
  const inbox::Provider provider = source->source.provider;
  if (provider == inbox::Provider::slack) {
    if (auto challenge = inbox::slack_challenge(arrival))
      co_return Response::text(200, std::move(*challenge));
  }
  auto message = inbox::make_message(*source, arrival);
  const std::string came_as = message.provider_id.value_or("");
  const Stored stored = co_await call.services.receiver->store(std::move(message));
  if (stored == Stored::duplicate_content) count_dropped(call, came_as, arrival.now);
  co_return respond(call, stored, provider);
}

}  // namespace

void add_inbound_routes(Routes& routes) {
  if (routes.services().receiver == nullptr) return;
  routes.add(Method::post, "/in/{source}", Access::everyone, receive, {.admit = admit});
}

}  // namespace postrider::api
