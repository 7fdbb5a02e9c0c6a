// /v1/tenants/{tenant}/replays and …/deliveries/{delivery}/replay
#include <utility>

#include "postrider/api/resources/lists.hpp"
#include "postrider/api/resources/replay_document.hpp"
#include "postrider/api/resources/tenant_document.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/api/wire/writable.hpp"
#include "postrider/registry/audience.hpp"
#include "postrider/registry/tenants.hpp"
#include "postrider/replay/request.hpp"

namespace postrider::api {

namespace {

using namespace std::chrono_literals;
using replay::Range;
using replay::Single;

constexpr auto kNotBeforeMax = std::chrono::days(30);
constexpr auto kDryRunPatience = 10s;  // then it returns the count so far

http::Problem problem_of_single(Single::Result outcome) {
  switch (outcome) {
    case Single::Result::endpoint_inactive:
      return endpoint_inactive();
    case Single::Result::event_gone:
      return problem(409, "outside-retention",
                     "The event is older than the retention time and can no longer be sent.");
    case Single::Result::event_erased:
      return problem(409, "payload-erased", "The payload of the event was erased, so it cannot be sent.");
    case Single::Result::too_fast: {
      http::Problem rejected =
          problem(429, "too-fast",
                  "A key can replay 10 single deliveries per second. To replay many, use "
                  "POST /v1/tenants/{tenant}/replays.");
      rejected.retry_after = 1s;
      return rejected;
    }
    case Single::Result::made:
    case Single::Result::unknown_delivery:
      break;
  }
  return unknown("delivery");
}

Task<Response> replay_one(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  const base::Timestamp now = call.services.registry.ids.now();
  FieldProblems problems;
  Fields fields(*document, "", problems);
  replay::SingleRequest request;
  fields.require("reason");
  fields.read("reason", request.reason, replay_reason_rule);
  read_time(fields, "not_before", request.not_before);
  if (request.not_before && *request.not_before > now + kNotBeforeMax)
    fields.reject("not_before", "may be at most 30 days from now");
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const auto delivery = model::DeliveryId::from_public_id(call.parameter("delivery"));
  if (!delivery) co_return call.reject(problem_of_single(Single::Result::unknown_delivery));
  request.tenant = call.tenant();
  request.delivery = *delivery;

  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const Single made = co_await replay::replay_delivery(*lease, caller, std::move(request));
  if (made.outcome != Single::Result::made) co_return call.reject(problem_of_single(made.outcome));
  call.services.own_metrics.replay_requests.add();
  JsonObject json;
  json.add("id", made.delivery.public_id())
      .add("replay_id", made.replay.public_id())
      .add("replayed_from", delivery->public_id())
      .add("status", "pending");
  co_return Response::json(202, json.text());
}

// Takes a connection for each look, so that others have their turn in between.
Task<Response> count(const Call& call, Range range) {
  replay::MatchCount counted(std::move(range));
  const base::SteadyTime deadline = base::BootClock::now() + kDryRunPatience;
  while (!counted.is_complete() && base::BootClock::now() < deadline) {
    const pg::Pool::Handle lease = co_await call.database();
    co_await counted.look(*lease);
  }
  JsonObject json;
  json.add("matched", counted.matched()).add("is_complete", counted.is_complete());
  co_return Response::json(200, json.text());
}

Task<Response> start(Call& call, RangeBody body) {
  body.request.range.tenant = call.tenant();
  {
    const pg::Pool::Handle lease = co_await call.database();
    const std::optional<http::Problem> problem = co_await resolve(*lease, body);
    if (problem) co_return call.reject(*problem);
    if (!body.is_dry_run) co_return co_await request_replay(call, *lease, std::move(body.request));
  }
  auto counting = count(call, std::move(body.request.range));
  co_return co_await counting;
}

Task<Response> create(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  if (const auto rejected = check_writable(call.principal, Written::replay, *document, call.services.config))
    co_return call.reject(*rejected);
  FieldProblems problems;
  const base::Timestamp now = call.services.registry.ids.now();
  RangeBody body = read_range(*document, call.services.config, now, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  auto starting = start(call, std::move(body));
  co_return co_await starting;
}

}  // namespace

Task<Response> list_replays(Call& call) {
  Query query(call.request);
  replay::ListFilter filter;
  const int limit = query.limit();
  filter.limit = limit + 1;
  filter.status = query.value("status");
  const auto& status = filter.status;
  if (status && status != "queued" && status != "running" && status != "completed" && status != "canceled")
    query.reject("status", "must be one of: queued, running, completed, canceled");
  const std::string after = query.after();
  if (!after.empty()) {
    const auto last = base::Uuid::from_hex(after);
    if (last)
      filter.before = model::ReplayId{*last};
    else
      query.reject("cursor", "invalid cursor");
  }
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  filter.tenant = call.tenant();
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<registry::Tenant> tenant = co_await registry::find_tenant(*lease, filter.tenant);
  if (!tenant) co_return call.reject(unknown("tenant"));
  const std::vector<replay::Replay> replays = co_await replay::list_replays(*lease, std::move(filter));
  std::vector<PageRow> rows;
  const http::Audience audience = registry::audience_of(call.principal);
  for (const auto& each : replays) rows.push_back({each.id.uuid.hex(), replay_json(each, audience)});
  co_return page(std::move(rows), limit);
}

namespace {

Task<Response> show(Call& call) {
  const auto id = model::ReplayId::from_public_id(call.parameter("replay"));
  if (!id) co_return call.reject(unknown_replay());
  const pg::Pool::Handle lease = co_await call.database();
  co_return co_await show_replay(call, *lease, *id, 200);
}

Task<Response> cancel(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  replay::CancelRequest request;
  read_reason(*document, request.reason, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const auto id = model::ReplayId::from_public_id(call.parameter("replay"));
  if (!id) co_return call.reject(unknown_replay());
  request.tenant = call.tenant();
  request.id = *id;
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  // One that is over stays as it is: canceling may be repeated.
  const bool is_canceled = co_await replay::cancel_replay(*lease, caller, std::move(request));
  static_cast<void>(is_canceled);
  co_return co_await show_replay(call, *lease, *id, 200);
}

}  // namespace

void add_replay_routes(Routes& routes) {
  routes.add(Method::post, "/v1/tenants/{tenant}/deliveries/{delivery}/replay", Access::customer, replay_one);
  routes.add(Method::post, "/v1/tenants/{tenant}/replays", Access::customer, create);
  routes.add(Method::get, "/v1/tenants/{tenant}/replays", Access::read, list_replays);
  routes.add(Method::get, "/v1/tenants/{tenant}/replays/{replay}", Access::read, show);
  routes.add(Method::post, "/v1/tenants/{tenant}/replays/{replay}/cancel", Access::customer, cancel);
}

}  // namespace postrider::api
