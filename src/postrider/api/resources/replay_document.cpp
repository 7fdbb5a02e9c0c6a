#include "postrider/api/resources/replay_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>
#include <vector>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

using replay::Range;
using replay::RangeRequest;
using replay::Scope;

constexpr size_t kTypesMax = 100;
constexpr size_t kIdsMax = 1'000;

void read_types(Fields& fields, Range& range) {
  const auto* value = fields.take("event_types");
  if (!value || value->is_null()) return;
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > kTypesMax)
    return fields.reject("event_types", "must be an array of 1 to 100 types or patterns");
  std::vector<std::string> types;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (text && model::is_pattern(*text))
      types.emplace_back(*text);
    else
      fields.reject("event_types", i, "must be an event type, a prefix ending in `.*`, or `*`");
  }
  range.event_types = std::move(types);
}

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
  range.until = std::min(until.value_or(now), now);
  if (since && *since < kept_since(config, range.scope, now))
    fields.reject("since", "is before the oldest retained data");
  if (since && range.until <= range.since) fields.reject("until", "must be after `since`");
}

std::optional<std::vector<base::Uuid>> read_ids(Fields& fields) {
  const auto* value = fields.take("ids");
  if (!value || value->is_null()) return std::nullopt;
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > kIdsMax) {
    fields.reject("ids", "must be an array of 1 to 1,000 delivery IDs");
    return std::nullopt;
  }
  std::vector<base::Uuid> ids;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    const auto id = text ? model::DeliveryId::from_public_id(*text) : std::nullopt;
    if (id)
      ids.push_back(id->uuid);
    else
      fields.reject("ids", i, "must be a delivery ID, such as dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c21");
  }
  return ids;
}

http::Problem too_many_replays(int limit) {
  return problem(
      409, "too-many-replays",
      fmt::format("{} replays of this tenant are waiting, which is the limit for customers. Wait until "
                  "one has ended, or cancel one.",
                  limit));
}

// A customer cannot queue replays without end.
Task<bool> has_room(const Call& call, pg::Link& link, model::TenantId tenant) {
  const int limit = call.services.config.customer_queued_replays_max;
  if (!call.principal.is_customer()) co_return true;
  replay::ListFilter waiting{.tenant = std::move(tenant), .status = "queued", .before = {}, .limit = limit};
  const std::vector<replay::Replay> found = co_await replay::list_replays(link, std::move(waiting));
  co_return found.size() < static_cast<size_t>(limit);
}

}  // namespace

void read_time(Fields& fields, std::string_view name, std::optional<base::Timestamp>& target) {
  std::optional<std::string> text;
  fields.read(name, text, {.bytes_max = 64});
  if (!text) return;
  target = base::parse_rfc3339(*text);
  if (!target) fields.reject(name, time_rule);
}

http::Problem unknown_replay() {
  return unknown("replay");
}

http::Problem endpoint_inactive() {
  return problem(409, "endpoint-inactive", "The endpoint is disabled or deleted; resume it first.");
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
  fields.read("reason", body.request.reason, replay_reason_rule);
  fields.finish();
  return body;
}

RangeBody read_dead_letters(const boost::json::object& document, const config::Config& config,
                            base::Timestamp now, FieldProblems& problems) {
  RangeBody body;
  Range& range = body.request.range;
  Fields fields(document, "", problems);
  std::optional<std::string> cause;
  bool is_all = false;
  fields.read("endpoint", body.endpoint, {.bytes_max = 64});
  fields.read("cause", cause, {.bytes_max = 64});
  if (cause && !is_cause(*cause)) fields.reject("cause", cause_rule);
  if (cause) range.causes = std::vector<std::string>{*cause};
  range.deliveries = read_ids(fields);
  std::optional<base::Timestamp> since, until;
  read_time(fields, "since", since);
  read_time(fields, "until", until);
  range.since = std::max(since.value_or(base::Timestamp{}), now - 2 * config.retain_events);
  range.until = std::min(until.value_or(now), now);
  if (range.until <= range.since) fields.reject("until", "must be after `since`");
  fields.read("all", is_all);
  const bool has_filter = body.endpoint || cause || since || until || is_all;
  if (problems.empty() && range.deliveries.has_value() == has_filter)
    fields.reject("ids", "give either ids or a filter: endpoint, cause, since, until, or \"all\": true");
  std::optional<double> rate;
  fields.read("rate_per_second", rate, {.max = 10'000});
  body.request.rate_per_second = rate.value_or(50);
  fields.require("reason");
  fields.read("reason", body.request.reason, replay_reason_rule);
  fields.finish();
  return body;
}

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

Task<Response> show_replay(Call& call, pg::Link& link, model::ReplayId id, int status) {
  const std::optional<replay::Replay> found = co_await replay::find_replay(link, call.tenant(), id);
  if (!found) co_return call.reject(unknown_replay());
  co_return Response::json(status, replay_json(*found, registry::audience_of(call.principal)));
}

Task<std::optional<http::Problem>> resolve(pg::Link& link, RangeBody& body) {
  Range& range = body.request.range;
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(link, range.tenant);
  if (!tenant) co_return unknown("tenant");
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

Task<Response> request_replay(Call& call, pg::Link& link, RangeRequest wanted) {
  const bool is_allowed = co_await has_room(call, link, wanted.range.tenant);
  if (!is_allowed) co_return call.reject(too_many_replays(call.services.config.customer_queued_replays_max));
  const double rate_max = call.services.config.customer_replay_rate_per_second;
  if (call.principal.is_customer()) wanted.rate_per_second = std::min(wanted.rate_per_second, rate_max);
  const registry::Caller caller = call.caller();
  const model::ReplayId id = co_await replay::request_range(link, caller, std::move(wanted));
  call.services.own_metrics.replay_requests.add();
  Response response = co_await show_replay(call, link, id, 202);
  response.header("location", "/v1/tenants/" + call.tenant() + "/replays/" + id.public_id());
  co_return response;
}

}  // namespace postrider::api
