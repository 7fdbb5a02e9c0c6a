// /v1/tenants/{tenant}/endpoints/{endpoint}/subscriptions
#include "postrider/registry/subscriptions.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/model/event_type.hpp"

namespace postrider::api {

namespace {

using registry::EndpointRef;
using registry::Subscription;
using registry::Subscriptions;
using registry::SubscriptionsResult;

constexpr size_t kVersionsMax = 20;

EndpointRef ref(const Call& call) {
  return {call.tenant(), call.parameter("endpoint")};
}

std::string subscription_json(const Subscription& subscription) {
  JsonObject json;
  json.add("pattern", subscription.pattern)
      .add("enabled", subscription.enabled)
      .add("versions", subscription.versions);
  return json.text();
}

// A PUT accepts this document unchanged.
Response respond(const Call& call, const SubscriptionsResult& result) {
  if (!result) return call.reject(problem_of(result.error()));
  std::vector<std::string> items;
  for (const auto& subscription : *result) items.push_back(subscription_json(subscription));
  JsonObject json;
  json.raw("data", json_array(items));
  return Response::json(200, json.text());
}

// `enabled` and `versions`.
void read_choices(Fields& fields, Subscription& subscription) {
  fields.read("enabled", subscription.enabled);
  const auto* value = fields.take("versions");
  if (!value) return;
  if (value->is_null()) return subscription.versions.reset();
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > kVersionsMax)
    return fields.reject("versions",
                         "must be null or an array of 1 to " + std::to_string(kVersionsMax) + " versions");
  std::vector<std::string> versions;
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (text && model::is_version(*text))
      versions.emplace_back(*text);
    else
      fields.reject("versions", i, "must be up to 64 letters, digits, dots, _ and -");
  }
  subscription.versions = std::move(versions);
}

Subscriptions read_subscriptions(const boost::json::object& document, size_t subscriptions_max,
                                 FieldProblems& problems) {
  Subscriptions subscriptions;
  Fields fields(document, "", problems);
  fields.require("data");
  const auto* value = fields.take("data");
  const auto* array = value ? value->if_array() : nullptr;
  if (value && (!array || array->empty() || array->size() > subscriptions_max)) {
    fields.reject("data", "must be an array of 1 to " + std::to_string(subscriptions_max) + " subscriptions");
    array = nullptr;
  }
  for (size_t i = 0; array && i < array->size(); ++i) {
    const auto* object = (*array)[i].if_object();
    if (!object) {
      fields.reject("data", i, "must be an object");
      continue;
    }
    Subscription subscription;
    Fields members(*object, fields.pointer("data") + "/" + std::to_string(i), problems);
    members.require("pattern");
    members.read("pattern", subscription.pattern, {.bytes_max = model::kEventTypeMax + 2});
    read_choices(members, subscription);
    members.finish();
    const auto is_same = [&](const Subscription& other) { return other.pattern == subscription.pattern; };
    if (!subscription.pattern.empty() && !model::is_pattern(subscription.pattern))
      members.reject("pattern", "must be an event type like invoice.paid, a prefix like invoice.*, or *");
    else if (std::any_of(subscriptions.begin(), subscriptions.end(), is_same))
      members.reject("pattern", "is listed twice");
    subscriptions.push_back(std::move(subscription));
  }
  fields.finish();
  return subscriptions;
}

Task<Response> show(Call& call) {
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const SubscriptionsResult found = co_await registry::find_subscriptions(*lease, std::move(of));
  co_return respond(call, found);
}

Task<Response> put(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Subscriptions wanted =
      read_subscriptions(*document, static_cast<size_t>(call.services.config.subscriptions_max), problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  EndpointRef of = ref(call);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const SubscriptionsResult replaced =
      co_await registry::replace_subscriptions(*lease, caller, std::move(of), std::move(wanted));
  co_return respond(call, replaced);
}

Task<Response> change(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  registry::SubscriptionEdit edit = [&document, &problems](Subscription& subscription) {
    Fields fields(*document, "", problems);
    read_choices(fields, subscription);
    fields.finish();
    return problems.empty();
  };
  EndpointRef of = ref(call);
  std::string pattern = call.parameter("pattern");
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  const auto changed = co_await registry::change_subscription(*lease, caller, std::move(of),
                                                              std::move(pattern), std::move(edit));
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (!changed) co_return call.reject(problem_of(changed.error()));
  co_return Response::json(200, subscription_json(*changed));
}

}  // namespace

void add_subscription_routes(Routes& routes) {
  const std::string all = "/v1/tenants/{tenant}/endpoints/{endpoint}/subscriptions";
  routes.add(Method::get, all, Access::read, show);
  routes.add(Method::put, all, Access::customer, put);
  routes.add(Method::patch, all + "/{pattern}", Access::customer, change);
}

}  // namespace postrider::api
