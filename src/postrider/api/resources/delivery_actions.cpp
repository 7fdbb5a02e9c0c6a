// POST …/deliveries/{delivery}/cancel and /retry
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/delivery/settle/delivery_actions.sql.hpp"
#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery.sql.hpp"
#include "postrider/history/delivery_rows.hpp"
#include "postrider/registry/audit.hpp"

namespace postrider::api {

namespace {

constexpr size_t kReasonMax = 1'000;

bool has_tenant(const Call& call) {
  return call.request.path_parameters.front().name == "tenant";
}

// The reason why there was no row to change: the delivery does not exist, or it has ended.
Task<http::Problem> why_not(const Call& call, pg::Link& link, model::DeliveryId id) {
  const std::vector<base::Uuid> ids{id.uuid};
  const auto rows = co_await link.run(
      history::sql::history_of_ids{.deliveries = ids, .smallest = id.uuid, .largest = id.uuid});
  const std::vector<history::Delivery> found = history::read_history(rows);
  const bool is_visible = !found.empty() && (!has_tenant(call) || found.front().tenant == call.tenant());
  if (!is_visible) co_return unknown("delivery");
  co_return problem(409, "delivery-not-pending",
                    "The delivery is not pending: it is " + std::string(label(found.front().status)) +
                        ". Use replay to send it again as a new delivery.");
}

template <pg::Query Action>
Task<Response> act(Call& call, const char* status) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::optional<std::string> reason;
  Fields fields(*document, "", problems);
  fields.read("reason", reason, TextRule{.bytes_max = kReasonMax});
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const auto id = model::DeliveryId::from_public_id(call.parameter("delivery"));
  if (!id) co_return call.reject(unknown("delivery"));
  std::optional<std::string> tenant;
  if (has_tenant(call)) tenant = call.tenant();
  const registry::Caller caller = call.caller();
  Action action{};
  action.delivery = id->uuid;
  action.tenant = tenant;
  action.actor_kind = registry::label(caller.kind);
  action.actor = caller.id;
  action.reason = reason;
  action.address = caller.address;
  action.request_id = caller.request_id;
  action.on_behalf_of = model::label(caller.actor);
  action.actor_name = caller.name;
  const pg::Pool::Handle lease = co_await call.database();
  const auto done = co_await lease->run(action);
  if (done.empty()) {
    const http::Problem problem = co_await why_not(call, *lease, *id);
    co_return call.reject(problem);
  }
  JsonObject json;
  json.add("id", id->public_id()).add("status", status);
  co_return Response::json(200, json.text());
}

Task<Response> cancel(Call& call) {
  return act<delivery::sql::cancel_delivery>(call, "canceled");
}

Task<Response> retry(Call& call) {
  return act<delivery::sql::retry_delivery>(call, "pending");
}

}  // namespace

void add_delivery_action_routes(Routes& routes) {
  const std::string of_tenant = "/v1/tenants/{tenant}/deliveries/{delivery}",
                    of_all = "/v1/deliveries/{delivery}";
  routes.add(Method::post, of_tenant + "/cancel", Access::customer, cancel);
  routes.add(Method::post, of_tenant + "/retry", Access::customer, retry);
  routes.add(Method::post, of_all + "/cancel", Access::operate, cancel);
  routes.add(Method::post, of_all + "/retry", Access::operate, retry);
}

}  // namespace postrider::api
