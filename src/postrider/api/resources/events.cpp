// /v1/tenants/{tenant}/events and /v1/events/batch: publishing.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "postrider/api/resources/validate.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/rate_fields.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/base/number_text.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/publish/event_request.hpp"
#include "postrider/publish/publisher.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using publish::NewEvent;
using publish::PublishAnswer;
using publish::Published;
using publish::Refused;

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text.ends_with('.') ? text : text + ".";
}

// Events of the reserved tenant are postrider's own.
http::Problem reserved() {
  return api::problem_of(registry::Refusal{registry::RefusalKind::reserved_tenant});
}

http::Problem problem_of(const publish::BadRequest& bad) {
  if (bad.status == 409) return reserved();
  if (bad.status == 400) return malformed(sentence(bad.detail));
  FieldProblems errors;
  for (const auto& error : bad.errors) errors.push_back({error.pointer, error.detail});
  return invalid(std::move(errors));
}

http::Problem problem_of(const Refused& refused) {
  http::Problem problem;
  problem.detail = sentence(refused.detail);
  switch (refused.reason) {
    case Refused::Reason::unknown_tenant:
      return unknown_tenant();
    case Refused::Reason::conflict:
      problem.status = 409;
      problem.type = "conflict";
      break;
    case Refused::Reason::too_large:
      problem.status = 413;
      problem.type = content_too_large;
      break;
    case Refused::Reason::unacceptable:
      problem.status = 422;
      problem.type = "invalid";
      problem.detail = "The request is invalid: " + refused.detail + ".";
      break;
    case Refused::Reason::too_fast:
      problem.status = 429;
      problem.type = "too-fast";
      problem.retry_after = std::chrono::seconds(1);
      break;
    case Refused::Reason::overloaded:
      problem.status = 503;
      problem.type = "overloaded";
      problem.retry_after = std::chrono::seconds(1);
      break;
    case Refused::Reason::unavailable:
      problem.status = 503;
      problem.type = "unavailable";
      problem.retry_after = std::chrono::seconds(2);
      break;
  }
  return problem;
}

// The largest data of an event, in any of its versions.
size_t data_bytes(const NewEvent& event) {
  size_t bytes = event.data.size();
  for (const auto& version : event.other_versions) bytes = std::max(bytes, version.data.size());
  return bytes;
}

struct EventSize {
  model::TenantId tenant;
  size_t data_bytes = 0;
};

// Completes a refusal with the numbers that only the caller knows: how large the data is, and the limit.
Task<void> explain_size(const Call& call, const EventSize& size, PublishAnswer& answer) {
  auto* refused = std::get_if<Refused>(&answer);
  if (refused == nullptr || refused->reason != Refused::Reason::too_large) co_return;
  Services& services = call.services;
  std::optional<registry::TenantLimits> limits = services.tenants.find(size.tenant, base::BootClock::now());
  try {
    if (!limits) {
      co_await wait_for_lookups(services);
      limits = co_await services.tenants.load(services.lookups, size.tenant);
    }
  } catch (const pg::Error&) {
    co_return;  // other events of the batch are committed, so the call must not fail for a number
  }
  const int64_t limit = limits && limits->payload_bytes_max ? int64_t{*limits->payload_bytes_max}
                                                            : services.config.payload_bytes_max;
  refused->detail = "Event data is " + base::grouped(size.data_bytes) + " bytes; this tenant's limit is " +
                    base::grouped(static_cast<uint64_t>(limit)) + ".";
}

std::optional<http::Problem> bad_key(const http::Request& request) {
  const auto key = request.header("idempotency-key");
  if (!key || publish::is_idempotency_key(*key)) return std::nullopt;
  return invalid(
      {{"Idempotency-Key", fmt::format("must be 1 to {} bytes of UTF-8", publish::kIdempotencyKeyBytesMax)}});
}

void add_traceparent(const http::Request& request, NewEvent& event) {
  const auto traceparent = request.header("traceparent");
  if (traceparent && publish::is_traceparent(*traceparent)) event.traceparent = *traceparent;
}

// To a key that is bound to a tenant there are no others.
std::optional<http::Problem> foreign(const Call& call, const model::TenantId& tenant) {
  if (!call.principal.tenant || *call.principal.tenant == tenant) return std::nullopt;
  return unknown_tenant();
}

Response answer_json(const Call& call, const PublishAnswer& answer) {
  if (const auto* refused = std::get_if<Refused>(&answer)) return call.refuse(problem_of(*refused));
  const auto& published = std::get<Published>(answer);
  return Response::json(published.is_repeat ? 200 : 202, published.answer);
}

// What is left of the tenant's publish rate, if it has one.
void tell_rate(const Call& call, Response& response) {
  if (!call.services.publish_rates) return;
  const auto allowance = call.services.publish_rates->allowance(call.tenant(), base::BootClock::now());
  if (allowance) add_rate_fields(response, "publish", *allowance);
}

Task<Response> publish_one(Call& call) {
  if (!is_json(call.request)) co_return call.refuse(not_json());
  if (call.request.body.empty()) co_return call.refuse(malformed("The request body is empty."));
  if (const auto problem = bad_key(call.request)) co_return call.refuse(*problem);
  if (call.tenant() == model::kReservedTenant) co_return call.refuse(reserved());
  auto parsed = publish::parse_event(call.request.body, call.tenant());
  if (!parsed.ok()) co_return call.refuse(problem_of(parsed.error()));
  NewEvent event = std::move(*parsed);
  if (needs_catalogue(call)) {
    const std::shared_ptr<const registry::Catalogue> catalogue = co_await catalogue_for_publishing(call);
    if (const auto problem = validate(call, catalogue.get(), event, "")) co_return call.refuse(*problem);
  }
  if (const auto key = call.request.header("idempotency-key")) event.idempotency_key = *key;
  add_traceparent(call.request, event);
  const EventSize size{call.tenant(), data_bytes(event)};
  auto publishing = call.services.publisher->publish(std::move(event));
  PublishAnswer answer = co_await publishing;
  co_await explain_size(call, size, answer);
  Response response = answer_json(call, answer);
  tell_rate(call, response);
  co_return response;
}

// An Idempotency-Key on a batch stands for one key per item, so that the repeated batch gets the same
// answers.
std::optional<std::string> item_key(const http::Request& request, size_t place) {
  const auto key = request.header("idempotency-key");
  if (!key) return std::nullopt;
  return fmt::format("batch-{}-{}", base::hex_encode(crypto::sha256(*key).view()), place);
}

std::string item_json(const Call& call, const PublishAnswer& answer) {
  if (const auto* refused = std::get_if<Refused>(&answer)) return call.refuse(problem_of(*refused)).body;
  const auto& published = std::get<Published>(answer);
  return fmt::format(R"({{"status":{},{})", published.is_repeat ? 200 : 202,
                     std::string_view(published.answer).substr(1));
}

bool is_overloaded(const std::vector<PublishAnswer>& answers) {
  const auto* refused = answers.empty() ? nullptr : std::get_if<Refused>(&answers.front());
  return refused != nullptr && refused->reason == Refused::Reason::overloaded;  // then all of them are
}

Task<Response> publish_batch(Call& call) {
  if (!is_json(call.request)) co_return call.refuse(not_json());
  if (call.request.body.empty()) co_return call.refuse(malformed("The request body is empty."));
  if (const auto problem = bad_key(call.request)) co_return call.refuse(*problem);
  const auto events_max = static_cast<size_t>(call.services.config.batch_events_max);
  auto parsed = publish::parse_batch(call.request.body, events_max);
  if (!parsed.ok()) co_return call.refuse(problem_of(parsed.error()));

  std::shared_ptr<const registry::Catalogue> catalogue;
  if (needs_catalogue(call)) catalogue = co_await catalogue_for_publishing(call);
  std::vector<std::string> items(parsed->size());
  std::vector<NewEvent> events;
  std::vector<size_t> places;
  std::vector<EventSize> sizes;
  for (size_t place = 0; place < parsed->size(); ++place) {
    auto& item = (*parsed)[place];
    if (!item.ok()) {
      items[place] = call.refuse(problem_of(item.error())).body;
      continue;
    }
    auto problem = foreign(call, item->tenant_id);
    if (!problem) problem = validate(call, catalogue.get(), *item, "/" + std::to_string(place));
    if (problem) {
      items[place] = call.refuse(*problem).body;
      continue;
    }
    item->idempotency_key = item_key(call.request, place);
    if (item->traceparent.empty()) add_traceparent(call.request, *item);
    sizes.push_back({item->tenant_id, data_bytes(*item)});
    events.push_back(std::move(*item));
    places.push_back(place);
  }
  auto publishing = call.services.publisher->publish_all(std::move(events));
  std::vector<PublishAnswer> answers = co_await publishing;
  if (is_overloaded(answers)) co_return call.refuse(problem_of(std::get<Refused>(answers.front())));
  for (size_t i = 0; i < answers.size(); ++i) {
    co_await explain_size(call, sizes[i], answers[i]);
    items[places[i]] = item_json(call, answers[i]);
  }
  co_return Response::json(200, json_array(items));
}

}  // namespace

void add_event_routes(Routes& routes) {
  if (routes.services().publisher == nullptr) return;
  const auto batch_bytes_max = static_cast<size_t>(routes.services().config.batch_body_bytes_max);
  routes.add(Method::post, "/v1/tenants/{tenant}/events", Access::publish, publish_one);
  routes.add(Method::post, "/v1/events/batch", Access::publish, publish_batch,
             {.body_bytes_max = batch_bytes_max, .bound_keys = BoundKeys::confined});
}

}  // namespace postrider::api
