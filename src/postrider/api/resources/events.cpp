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
using publish::Published;
using publish::PublishResult;
using publish::Rejected;

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text.ends_with('.') ? text : text + ".";
}

// Events of the reserved tenant are postrider's own.
http::Problem reserved() {
  return api::problem_of(registry::Rejection{registry::RejectionKind::reserved_tenant});
}

http::Problem problem_of(const publish::BadRequest& bad) {
  if (bad.status == 409) return reserved();
  if (bad.status == 400) return malformed(sentence(bad.detail));
  FieldProblems errors;
  for (const auto& error : bad.errors) errors.push_back({error.pointer, error.detail});
  return invalid(std::move(errors));
}

http::Problem problem_of(const Rejected& rejected) {
  std::string detail = sentence(rejected.detail);
  switch (rejected.reason) {
    case Rejected::Reason::unknown_tenant:
      return unknown("tenant");
    case Rejected::Reason::conflict:
      return problem(409, "conflict", std::move(detail));
    case Rejected::Reason::too_large:
      return problem(413, content_too_large, std::move(detail));
    case Rejected::Reason::invalid:
      return problem(422, "invalid", "The request is invalid: " + rejected.detail + ".");
    case Rejected::Reason::too_fast:
      return try_later(429, "too-fast", std::move(detail));
    case Rejected::Reason::overloaded:
      return try_later(503, "overloaded", std::move(detail));
    case Rejected::Reason::unavailable:
      break;
  }
  return try_later(503, "unavailable", std::move(detail), std::chrono::seconds(2));
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

// Completes a rejection with the numbers that only the caller knows: how large the data is, and the limit.
Task<void> explain_size(const Call& call, const EventSize& size, PublishResult& result) {
  auto* rejected = std::get_if<Rejected>(&result);
  if (rejected == nullptr || rejected->reason != Rejected::Reason::too_large) co_return;
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
  rejected->detail = "Event data is " + base::grouped(size.data_bytes) + " bytes; this tenant's limit is " +
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
  return unknown("tenant");
}

Response respond(const Call& call, const PublishResult& result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) return call.reject(problem_of(*rejected));
  const auto& published = std::get<Published>(result);
  return Response::json(published.is_repeat ? 200 : 202, published.response);
}

// The remaining publish rate of the tenant, if it has a limit.
void add_publish_rate(const Call& call, Response& response) {
  if (!call.services.publish_rates) return;
  const auto allowance = call.services.publish_rates->allowance(call.tenant(), base::BootClock::now());
  if (allowance) add_rate_fields(response, "publish", *allowance);
}

Task<Response> publish_one(Call& call) {
  if (!is_json(call.request)) co_return call.reject(not_json());
  if (call.request.body.empty()) co_return call.reject(malformed("The request body is empty."));
  if (const auto problem = bad_key(call.request)) co_return call.reject(*problem);
  if (call.tenant() == model::kReservedTenant) co_return call.reject(reserved());
  auto parsed = publish::parse_event(call.request.body, call.tenant());
  if (!parsed.ok()) co_return call.reject(problem_of(parsed.error()));
  NewEvent event = std::move(*parsed);
  if (needs_catalogue(call)) {
    const std::shared_ptr<const registry::Catalogue> catalogue = co_await catalogue_for_publishing(call);
    if (const auto problem = validate(call, catalogue.get(), event, "")) co_return call.reject(*problem);
  }
  if (const auto key = call.request.header("idempotency-key")) event.idempotency_key = *key;
  add_traceparent(call.request, event);
  const EventSize size{call.tenant(), data_bytes(event)};
  auto publishing = call.services.publisher->publish(std::move(event));
  PublishResult result = co_await publishing;
  co_await explain_size(call, size, result);
  Response response = respond(call, result);
  add_publish_rate(call, response);
  co_return response;
}

// An Idempotency-Key on a batch stands for one key per item, so that the repeated batch gets the same
// results.
std::optional<std::string> item_key(const http::Request& request, size_t place) {
  const auto key = request.header("idempotency-key");
  if (!key) return std::nullopt;
  return fmt::format("batch-{}-{}", base::hex_encode(crypto::sha256(*key).view()), place);
}

std::string item_json(const Call& call, const PublishResult& result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) return call.reject(problem_of(*rejected)).body;
  const auto& published = std::get<Published>(result);
  return fmt::format(R"({{"status":{},{})", published.is_repeat ? 200 : 202,
                     std::string_view(published.response).substr(1));
}

bool is_overloaded(const std::vector<PublishResult>& results) {
  const auto* rejected = results.empty() ? nullptr : std::get_if<Rejected>(&results.front());
  return rejected != nullptr && rejected->reason == Rejected::Reason::overloaded;  // then all of them are
}

Task<Response> publish_batch(Call& call) {
  if (!is_json(call.request)) co_return call.reject(not_json());
  if (call.request.body.empty()) co_return call.reject(malformed("The request body is empty."));
  if (const auto problem = bad_key(call.request)) co_return call.reject(*problem);
  const auto events_max = static_cast<size_t>(call.services.config.batch_events_max);
  auto parsed = publish::parse_batch(call.request.body, events_max);
  if (!parsed.ok()) co_return call.reject(problem_of(parsed.error()));

  std::shared_ptr<const registry::Catalogue> catalogue;
  if (needs_catalogue(call)) catalogue = co_await catalogue_for_publishing(call);
  std::vector<std::string> items(parsed->size());
  std::vector<NewEvent> events;
  std::vector<size_t> places;
  std::vector<EventSize> sizes;
  for (size_t place = 0; place < parsed->size(); ++place) {
    auto& item = (*parsed)[place];
    if (!item.ok()) {
      items[place] = call.reject(problem_of(item.error())).body;
      continue;
    }
    auto problem = foreign(call, item->tenant_id);
    if (!problem) problem = validate(call, catalogue.get(), *item, "/" + std::to_string(place));
    if (problem) {
      items[place] = call.reject(*problem).body;
      continue;
    }
    item->idempotency_key = item_key(call.request, place);
    if (item->traceparent.empty()) add_traceparent(call.request, *item);
    sizes.push_back({item->tenant_id, data_bytes(*item)});
    events.push_back(std::move(*item));
    places.push_back(place);
  }
  auto publishing = call.services.publisher->publish_all(std::move(events));
  std::vector<PublishResult> results = co_await publishing;
  if (is_overloaded(results)) co_return call.reject(problem_of(std::get<Rejected>(results.front())));
  for (size_t i = 0; i < results.size(); ++i) {
    co_await explain_size(call, sizes[i], results[i]);
    items[places[i]] = item_json(call, results[i]);
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
