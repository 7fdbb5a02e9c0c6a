// GET and PATCH /v1/brakes: what an operator does first in an incident.
#include "postrider/registry/brakes.hpp"

#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

namespace {

constexpr double kRateMax = 1e6;
constexpr size_t kReasonMax = 1'000;

Response respond(const registry::BrakeState& state) {
  JsonObject json;
  json.add("pause_all", state.settings.is_paused)
      .add("retry_rate_per_second", state.settings.retry_rate_per_second)
      .add("drain_rate_per_second", state.settings.drain_rate_per_second)
      .add("reason", state.reason)
      .add("changed_by", state.changed_by)
      .add("changed_at", state.changed_at);
  return Response::json(200, json.text());
}

Task<Response> show(Call& call) {
  const pg::Pool::Handle lease = co_await call.database();
  const registry::BrakeState state = co_await registry::load_brakes(*lease);
  co_return respond(state);
}

void read(const boost::json::object& document, registry::BrakeSettings& settings, std::string& reason,
          FieldProblems& problems) {
  Fields fields(document, "", problems);
  fields.read("pause_all", settings.is_paused);
  fields.read("retry_rate_per_second", settings.retry_rate_per_second, NumberRule{.max = kRateMax});
  fields.read("drain_rate_per_second", settings.drain_rate_per_second, NumberRule{.max = kRateMax});
  fields.require("reason");
  fields.read("reason", reason, TextRule{.bytes_max = kReasonMax});
  fields.finish();
}

Task<Response> change(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  registry::BrakeSettings checked;
  registry::BrakeChange wanted;
  read(*document, checked, wanted.reason, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  wanted.apply = [&document](registry::BrakeSettings& settings) {
    FieldProblems none;
    std::string reason;
    read(*document, settings, reason, none);
  };
  wanted.caller = call.caller();
  const pg::Pool::Handle lease = co_await call.database();
  const registry::BrakeState state = co_await registry::change_brakes(*lease, std::move(wanted));
  co_return respond(state);
}

}  // namespace

void add_brake_routes(Routes& routes) {
  routes.add(Method::get, "/v1/brakes", Access::read, show);
  routes.add(Method::patch, "/v1/brakes", Access::operate, change);
}

}  // namespace postrider::api
