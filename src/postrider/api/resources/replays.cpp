// /v1/tenants/{tenant}/replays and …/deliveries/{delivery}/replay
#include <boost/json/array.hpp>
#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/resources/tenant_document.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/tenants.hpp"
#include "postrider/replay/request.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
using replay::Range;
using replay::RangeRequest;
using replay::Scope;
using replay::Single;

constexpr TextRule kReason{.bytes_max = 1'000};
constexpr size_t kTypesMax = 100;
constexpr size_t kIdsMax = 1'000;
constexpr auto kNotBeforeMax = std::chrono::days(30);
constexpr auto kDryRunPatience = 10s;  // then it says how far it came

http::Problem make(int status, std::string type, std::string detail) {
  http::Problem problem;
  problem.status = status;
  problem.type = std::move(type);
  problem.detail = std::move(detail);
  return problem;
}

http::Problem unknown_replay() {
  return make(404, "unknown-replay", "There is no such replay.");
}

http::Problem endpoint_inactive() {
  return make(409, "endpoint-inactive", "The endpoint is disabled or deleted; resume it first.");
}

http::Problem problem_of_single(Single::Outcome outcome) {
  switch (outcome) {
    case Single::Outcome::endpoint_inactive:
      return endpoint_inactive();
    case Single::Outcome::event_gone:
      return make(409, "outside-retention",
                  "The event is past its retention; there is nothing left to send.");
    case Single::Outcome::event_erased:
      return make(409, "payload-erased",
                  "The payload of the event was erased; there is nothing left to send.");
    case Single::Outcome::too_fast: {
      http::Problem problem = make(429, "too-fast",
                                   "A key may replay 10 deliveries one by one in a second; for many there is "
                                   "POST /v1/tenants/{tenant}/replays.");
      problem.retry_after = 1s;
      return problem;
    }
    case Single::Outcome::made:
    case Single::Outcome::unknown_delivery:
      break;
  }
  return make(404, "unknown-delivery", "There is no such delivery.");
}

void read_time(Fields& fields, std::string_view name, std::optional<base::Timestamp>& target) {
  std::optional<std::string> text;
  fields.read(name, text, {.bytes_max = 64});
  if (!text) return;
  target = base::parse_rfc3339(*text);
  if (!target) fields.refuse(name, "must be a time as in RFC 3339");
}

Task<Response> replay_one(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.refuse(document.error());
  const base::Timestamp now = call.services.registry.ids.now();
  FieldProblems problems;
  Fields fields(*document, "", problems);
  replay::SingleRequest request;
  fields.require("reason");
  fields.read("reason", request.reason, kReason);
  read_time(fields, "not_before", request.not_before);
  if (request.not_before && *request.not_before > now + kNotBeforeMax)
    fields.refuse("not_before", "may be at most 30 days from now");
  fields.finish();
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  const auto delivery = model::DeliveryId::from_public_id(call.parameter("delivery"));
  if (!delivery) co_return call.refuse(problem_of_single(Single::Outcome::unknown_delivery));
  request.tenant = call.tenant();
  request.delivery = *delivery;

  const pg::Pool::Lease lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const Single made = co_await replay::replay_delivery(*lease, caller, std::move(request));
  if (made.outcome != Single::Outcome::made) co_return call.refuse(problem_of_single(made.outcome));
  call.services.metrics.replay_requests.add();
  JsonObject json;
  json.add("id", made.delivery.public_id())
      .add("replay_id", made.replay.public_id())
      .add("replayed_from", delivery->public_id())
      .add("status", "pending");
  co_return Response::json(202, json.text());
}

void read_types(Fields& fields, Range& range) {
  const auto* value = fields.take("event_types");
  if (!value || value->is_null()) return;
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > kTypesMax)
    return fields.refuse("event_types", "must be an array of 1 to 100 types or patterns");
  std::vector<std::string> types;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (text && model::is_pattern(*text))
      types.emplace_back(*text);
    else
      fields.refuse("event_types", i, "must be an event type, a prefix ending in `.*`, or `*`");
  }
  range.event_types = std::move(types);
}

struct RangeBody {
  RangeRequest request;
  std::optional<std::string> endpoint;
  bool is_dry_run = false;
};

// What is past its retention is not there to be sent; whether an event was delivered is known only while its
// attempts are kept.
base::Timestamp kept_since(const config::Config& config, Scope scope, base::Timestamp now) {
  const auto kept =
      scope == Scope::missing ? std::min(config.retain_events, config.retain_attempts) : config.retain_events;
  return now - kept;
}

void read_times(Fields& fields, const config::Config& config, base::Timestamp now, Range& range) {
  std::optional<base::Timestamp> since, until;
  fields.require("since");
  read_time(fields, "since", since);
  read_time(fields, "until", until);
  range.since = since.value_or(now);
  range.until = std::min(until.value_or(now), now);  // what comes later is nobody's past
  if (since && *since < kept_since(config, range.scope, now))
    fields.refuse("since", "is before what is still kept");
  if (since && range.until <= range.since) fields.refuse("until", "must be after `since`");
}

RangeBody read_range(const boost::json::object& document, const config::Config& config, base::Timestamp now,
                     FieldProblems& problems) {
  RangeBody body;
  Range& range = body.request.range;
  Fields fields(document, "", problems);
  fields.require("only");
  fields.read<Scope>(
      "only", range.scope,
      {.parse = replay::parse_scope, .default_value = Scope::failed, .choices = "failed, missing, all"});
  fields.read("endpoint", body.endpoint, {.bytes_max = 64});
  read_types(fields, range);
  read_times(fields, config, now, range);
  std::optional<double> rate;
  fields.read("rate_per_second", rate, {.max = 10'000});
  body.request.rate_per_second = rate.value_or(50);
  fields.read("dry_run", body.is_dry_run);
  if (!body.is_dry_run) fields.require("reason");
  fields.read("reason", body.request.reason, kReason);
  fields.finish();
  return body;
}

// Who of the operator's staff asked for it, and why, is not for customers.
std::string replay_json(const replay::Replay& replay, http::Audience audience) {
  const bool is_own = replay.on_behalf_of == model::Actor::customer;
  const http::Audience shown_to = is_own ? http::Audience::operators : audience;
  JsonObject json;
  json.add("id", replay.id.public_id())
      .add("kind", replay.kind)
      .add("status", replay.status)
      .add("matched", replay.matched)
      .add("is_counted", replay.is_counted)
      .add("queued", replay.queued)
      .add("delivered", replay.delivered)
      .add("failed", replay.failed)
      .add("canceled", replay.canceled)
      .add("pending", replay.queued - replay.delivered - replay.failed - replay.canceled)
      .add("reason", registry::shown_to_operators(shown_to, replay.reason))
      .add("requested_by", registry::shown_to_operators(shown_to, replay.requested_by))
      .add("on_behalf_of", model::label(replay.on_behalf_of));
  if (replay.delivery) json.add("delivery_id", replay.delivery->public_id());
  if (replay.scope) {
    json.add("only", *replay.scope)
        .add("endpoint", replay.endpoint)
        .add("event_types", replay.event_types)
        .add("since", replay.since)
        .add("until", replay.until)
        .add("rate_per_second", replay.rate_per_second);
  }
  json.add("created_at", replay.created_at)
      .add("started_at", replay.started_at)
      .add("finished_at", replay.finished_at);
  return json.text();
}

Task<Response> show_id(Call& call, pg::Link& link, model::ReplayId id, int status) {
  const std::optional<replay::Replay> found = co_await replay::find_replay(link, call.tenant(), id);
  if (!found) co_return call.refuse(unknown_replay());
  co_return Response::json(status, replay_json(*found, registry::audience_of(call.principal)));
}

// What is wrong with the tenant or the endpoint of a range, or nothing; then the range has its endpoint.
Task<std::optional<http::Problem>> resolve(pg::Link& link, RangeBody& body) {
  Range& range = body.request.range;
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(link, range.tenant);
  if (!tenant) co_return unknown_tenant();
  if (!body.endpoint) co_return std::nullopt;
  const auto endpoint = co_await replay::find_endpoint(link, range.tenant, *body.endpoint);
  if (!endpoint) {
    FieldProblems problems;
    problems.push_back({"/endpoint", "is not an endpoint of this tenant"});
    co_return invalid(std::move(problems));
  }
  if (!endpoint->is_active) co_return endpoint_inactive();
  range.endpoint = endpoint->id;
  co_return std::nullopt;
}

// Takes a connection for each look, so that others have their turn in between.
Task<Response> count(const Call& call, Range range) {
  replay::MatchCount counted(std::move(range));
  const base::SteadyTime deadline = base::BootClock::now() + kDryRunPatience;
  while (!counted.is_complete() && base::BootClock::now() < deadline) {
    const pg::Pool::Lease lease = co_await call.database();
    co_await counted.look(*lease);
  }
  JsonObject json;
  json.add("matched", counted.matched()).add("is_complete", counted.is_complete());
  co_return Response::json(200, json.text());
}

Task<Response> request(Call& call, pg::Link& link, RangeRequest wanted) {
  const registry::Caller caller = call.caller();
  const model::ReplayId id = co_await replay::request_range(link, caller, std::move(wanted));
  call.services.metrics.replay_requests.add();
  Response response = co_await show_id(call, link, id, 202);
  response.header("location", "/v1/tenants/" + call.tenant() + "/replays/" + id.public_id());
  co_return response;
}

Task<Response> start(Call& call, RangeBody body) {
  body.request.range.tenant = call.tenant();
  {
    const pg::Pool::Lease lease = co_await call.database();
    const std::optional<http::Problem> problem = co_await resolve(*lease, body);
    if (problem) co_return call.refuse(*problem);
    if (!body.is_dry_run) co_return co_await request(call, *lease, std::move(body.request));
  }
  auto counting = count(call, std::move(body.request.range));
  co_return co_await counting;
}

// Which dead letters: by their ids, or by a filter. Without a time, all that are kept.
RangeBody read_dead_letters(const boost::json::object& document, const config::Config& config,
                            base::Timestamp now, FieldProblems& problems) {
  RangeBody body;
  Range& range = body.request.range;
  Fields fields(document, "", problems);
  std::optional<std::string> cause;
  fields.read("endpoint", body.endpoint, {.bytes_max = 64});
  fields.read("cause", cause, {.bytes_max = 64});
  if (cause && !is_cause(*cause)) fields.refuse("cause", cause_rule);
  if (cause) range.causes = std::vector<std::string>{*cause};
  if (const auto* value = fields.take("ids"); value && !value->is_null()) {
    const auto* array = value->if_array();
    if (!array || array->empty() || array->size() > kIdsMax) {
      fields.refuse("ids", "must be an array of 1 to 1000 ids of deliveries");
    } else {
      range.deliveries.emplace();
      for (size_t i = 0; i < array->size(); ++i) {
        const auto* text = (*array)[i].if_string();
        const auto id = text ? model::DeliveryId::from_public_id(*text) : std::nullopt;
        if (id)
          range.deliveries->push_back(id->uuid);
        else
          fields.refuse("ids", i, "is not the id of a delivery");
      }
    }
  }
  std::optional<base::Timestamp> since, until;
  read_time(fields, "since", since);
  read_time(fields, "until", until);
  range.since = std::max(since.value_or(base::Timestamp{}), now - 2 * config.retain_events);
  range.until = std::min(until.value_or(now), now);
  if (range.until <= range.since) fields.refuse("until", "must be after `since`");
  std::optional<double> rate;
  fields.read("rate_per_second", rate, {.max = 10'000});
  body.request.rate_per_second = rate.value_or(50);
  fields.require("reason");
  fields.read("reason", body.request.reason, kReason);
  fields.finish();
  return body;
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.refuse(document.error());
  FieldProblems problems;
  const base::Timestamp now = call.services.registry.ids.now();
  RangeBody body = read_range(*document, call.services.config, now, problems);
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  auto starting = start(call, std::move(body));
  co_return co_await starting;
}

Task<Response> replay_dead_letters(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.refuse(document.error());
  FieldProblems problems;
  const base::Timestamp now = call.services.registry.ids.now();
  RangeBody body = read_dead_letters(*document, call.services.config, now, problems);
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  auto starting = start(call, std::move(body));
  co_return co_await starting;
}

Task<Response> list(Call& call) {
  Query query(call.request);
  replay::ListFilter filter;
  const int limit = query.limit();
  filter.limit = limit + 1;
  filter.status = query.value("status");
  const auto& status = filter.status;
  if (status && status != "queued" && status != "running" && status != "completed" && status != "canceled")
    query.refuse("status", "must be one of: queued, running, completed, canceled");
  const std::string after = query.after();
  if (!after.empty()) {
    const auto last = base::Uuid::from_hex(after);
    if (last)
      filter.before = model::ReplayId{*last};
    else
      query.refuse("cursor", "is not a cursor that a list returned");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  filter.tenant = call.tenant();
  const pg::Pool::Lease lease = co_await call.database();
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, filter.tenant);
  if (!tenant) co_return call.refuse(unknown_tenant());
  const std::vector<replay::Replay> replays = co_await replay::list_replays(*lease, std::move(filter));
  std::vector<PageRow> rows;
  const http::Audience audience = registry::audience_of(call.principal);
  for (const auto& each : replays) rows.push_back({each.id.uuid.hex(), replay_json(each, audience)});
  co_return page(std::move(rows), limit);
}

Task<Response> show(Call& call) {
  const auto id = model::ReplayId::from_public_id(call.parameter("replay"));
  if (!id) co_return call.refuse(unknown_replay());
  const pg::Pool::Lease lease = co_await call.database();
  co_return co_await show_id(call, *lease, *id, 200);
}

Task<Response> cancel(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.refuse(document.error());
  FieldProblems problems;
  replay::CancelRequest request;
  read_reason(*document, request.reason, problems);
  if (!problems.empty()) co_return call.refuse(invalid(std::move(problems)));
  const auto id = model::ReplayId::from_public_id(call.parameter("replay"));
  if (!id) co_return call.refuse(unknown_replay());
  request.tenant = call.tenant();
  request.id = *id;
  const pg::Pool::Lease lease = co_await call.database();
  const registry::Caller caller = call.caller();
  // One that is over stays as it is: canceling may be repeated.
  const bool is_canceled = co_await replay::cancel_replay(*lease, caller, std::move(request));
  static_cast<void>(is_canceled);
  co_return co_await show_id(call, *lease, *id, 200);
}

}  // namespace

void add_replay_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants/{tenant}/deliveries/{delivery}/replay", Access::operate, replay_one);
  routes.add(Method::post, "/v1/tenants/{tenant}/replays", Access::operate, create);
  routes.add(Method::get, "/v1/tenants/{tenant}/replays", Access::read, list);
  routes.add(Method::post, "/v1/tenants/{tenant}/dead-letters/replay", Access::operate, replay_dead_letters);
  routes.add(Method::get, "/v1/tenants/{tenant}/replays/{replay}", Access::read, show);
  routes.add(Method::post, "/v1/tenants/{tenant}/replays/{replay}/cancel", Access::operate, cancel);
}

}  // namespace postrider::api
