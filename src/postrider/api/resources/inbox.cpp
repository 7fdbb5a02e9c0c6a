// /v1/sources/{source}/messages for people, /v1/inbox for consumers that do not speak SQL.
#include <algorithm>
#include <utility>

#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/inbox/messages.hpp"
#include "postrider/inbox/messages.sql.hpp"
#include "postrider/inbox/waiters.hpp"

namespace postrider::api {

namespace {

using inbox::Message;
using model::MessageId;

constexpr TextRule kWorkerRule{.bytes_max = 128};
constexpr TextRule kErrorRule{.bytes_max = 4096, .may_be_empty = true};
constexpr TextRule kReasonRule{.bytes_max = 1024};
constexpr IntegerRule kMaxRule{1, 1'000};
constexpr IntegerRule kLeaseRule{1, 86'400};
constexpr IntegerRule kRetryRule{0, 30 * 86'400};
constexpr IntegerRule kWaitRule{0, 30};
constexpr size_t kIdsMax = 1'000;
constexpr std::chrono::seconds kPollInterval{1};

// Bodies and headers only for keys that may see payloads.
std::string message_json(const Call& call, const Message& message) {
  JsonObject json;
  json.add("id", message.id.public_id())
      .add("source", message.source_id)
      .add("provider_id", message.provider_id)
      .add("partition_key", message.partition_key)
      .add("status", message.status)
      .add("attempts", message.attempts)
      .add("last_error", message.last_error)
      .add("event_id", message.event_id)
      .add("received_at", message.received_at)
      .add("done_at", message.done_at)
      .add("dead_at", message.dead_at)
      .add("leased_by", message.leased_by)
      .add("due_at", message.due_at);
  if (call.principal.sees_payloads) json.raw("headers", message.headers).add("body", message.body);
  return json.text();
}

// The problem if the source does not exist.
Task<std::optional<http::Problem>> unknown_source(pg::Link& link, const std::string& source) {
  const auto found = co_await inbox::find_source(link, source);
  if (found) co_return std::nullopt;
  co_return problem_of(registry::Rejection{registry::RejectionKind::unknown_source});
}

Task<Response> list(Call& call) {
  Query query(call.request);
  inbox::MessageFilter filter;
  filter.source = call.parameter("source");
  filter.limit = query.limit();
  const std::string after = query.after();
  if (!after.empty()) {
    filter.before = MessageId::from_public_id(after);
    if (!filter.before) query.reject("cursor", "invalid cursor");
  }
  filter.status = query.value("status");
  const auto& status = filter.status;
  if (status && status != "pending" && status != "done" && status != "dead" && status != "discarded")
    query.reject("status", "must be one of: pending, done, dead, discarded");
  const auto [since, until] = query.range();
  filter.since = since;
  filter.until = until;
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const auto unknown = co_await unknown_source(*lease, filter.source);
  if (unknown) co_return call.reject(*unknown);
  const inbox::MessagePage found = co_await inbox::list_messages(*lease, std::move(filter));
  std::vector<std::string> items;
  for (const auto& message : found.messages) items.push_back(message_json(call, message));
  std::optional<std::string> next;
  if (found.next) next = found.next->public_id();
  co_return page(items, next);
}

Task<Response> show(Call& call) {
  const auto id = MessageId::from_public_id(call.parameter("message"));
  if (!id) co_return call.reject(unknown("message"));
  std::string source = call.parameter("source");
  const pg::Pool::Handle lease = co_await call.database();
  const auto message = co_await inbox::find_message(*lease, std::move(source), *id);
  if (!message) co_return call.reject(unknown("message"));
  co_return Response::json(200, message_json(call, *message));
}

std::vector<std::string> read_ids(Fields& fields) {
  std::vector<std::string> ids;
  const auto* value = fields.take("ids");
  if (!value) return ids;
  const auto* array = value->if_array();
  if (!array || array->empty() || array->size() > kIdsMax) {
    fields.reject("ids", "must be an array of 1 to " + std::to_string(kIdsMax) + " ids of messages");
    return ids;
  }
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    if (text && MessageId::from_public_id(*text))
      ids.emplace_back(*text);
    else
      fields.reject("ids", i, "must be a message ID");
  }
  return ids;
}

using RepairCall = Task<int64_t> (*)(pg::Link&, const registry::Caller&, inbox::Repair);

// By ids, or {"status": "dead"} for the oldest dead ones of the source.
Task<Response> repair(Call& call, RepairCall repair_call, const char* counted) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  inbox::Repair what;
  what.source = call.parameter("source");
  std::optional<std::string> status;
  Fields fields(*document, "", problems);
  for (const auto& id : read_ids(fields)) what.ids.push_back(*MessageId::from_public_id(id));
  fields.read("status", status, kReasonRule);
  fields.read("reason", what.reason, kReasonRule);
  if (status && *status != "dead") fields.reject("status", "must be dead");
  if (fields.has("ids") == status.has_value())
    fields.reject("ids", "give either ids or \"status\": \"dead\"");
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const auto unknown = co_await unknown_source(*lease, what.source);
  if (unknown) co_return call.reject(*unknown);
  const registry::Caller caller = call.caller();
  const int64_t count = co_await repair_call(*lease, caller, std::move(what));
  JsonObject json;
  json.add(counted, count);
  co_return Response::json(200, json.text());
}

Task<Response> retry(Call& call) {
  return repair(call, inbox::retry_messages, "retried");
}

Task<Response> discard(Call& call) {
  return repair(call, inbox::discard_messages, "discarded");
}

std::string claimed_json(const inbox::Claimed& claimed) {
  JsonObject json;
  json.add("id", claimed.id)
      .add("source", claimed.source)
      .add("provider_id", claimed.provider_id)
      .add("partition_key", claimed.partition_key)
      .raw("headers", claimed.headers)
      .add("body", claimed.body)
      .add("attempts", claimed.attempts)
      .add("received_at", claimed.received_at);
  return json.text();
}

// inbox_claim(): there is no such source.
constexpr std::string_view kNoDataFound = "P0002";

Task<std::vector<inbox::Claimed>> claim_once(Call& call, const inbox::Claim& wanted) {
  const pg::Pool::Handle lease = co_await call.database();
  try {
    co_return co_await inbox::claim(*lease, wanted);
  } catch (const pg::Error& error) {
    if (error.sqlstate() != kNoDataFound) throw;
  }
  throw CallRejected(problem_of(registry::Rejection{registry::RejectionKind::unknown_source}));
}

// Long polling: no connection is held while there is nothing to claim.
Task<Response> claim(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  inbox::Claim wanted;
  int32_t lease_seconds = 60, wait_seconds = 0;
  Fields fields(*document, "", problems);
  fields.require("worker");
  fields.read("worker", wanted.worker, kWorkerRule);
  fields.require("source");
  fields.read("source", wanted.source, {.bytes_max = 64});
  fields.read("max", wanted.count_max, kMaxRule, 10);
  fields.read("lease_seconds", lease_seconds, kLeaseRule, 60);
  fields.read("wait_seconds", wait_seconds, kWaitRule, 0);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (!call.principal.sees_payloads)
    co_return call.reject(forbidden("Claiming messages needs an API key with access to payloads."));
  wanted.lease_seconds = lease_seconds;

  const base::SteadyTime deadline = base::BootClock::now() + std::chrono::seconds(wait_seconds);
  inbox::Waiters* waiters = call.services.waiters;
  std::vector<inbox::Claimed> claimed = co_await claim_once(call, wanted);
  while (claimed.empty() && waiters && !waiters->is_stopping() && base::BootClock::now() < deadline) {
    const base::SteadyTime next_look =
        std::min<base::SteadyTime>(deadline, base::BootClock::now() + kPollInterval);
    co_await waiters->wait(wanted.source, next_look);
    if (waiters->is_stopping()) break;
    claimed = co_await claim_once(call, wanted);
  }
  std::vector<std::string> items;
  for (const auto& each : claimed) items.push_back(claimed_json(each));
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

Response counted(const char* name, int32_t count) {
  JsonObject json;
  json.add(name, count);
  return Response::json(200, json.text());
}

Task<Response> ack(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::string worker;
  Fields fields(*document, "", problems);
  fields.require("worker");
  fields.read("worker", worker, kWorkerRule);
  fields.require("ids");
  const auto ids = read_ids(fields);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows = co_await lease->run(inbox::sql::ack{.worker = worker, .ids = ids});
  co_return counted("acked", rows.front().acked);
}

Task<Response> nack(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::string worker, id, error;
  std::optional<int32_t> retry_in;
  Fields fields(*document, "", problems);
  fields.require("worker");
  fields.read("worker", worker, kWorkerRule);
  fields.require("id");
  fields.read("id", id, kWorkerRule);
  fields.read("error", error, kErrorRule);
  fields.read("retry_in_seconds", retry_in, kRetryRule);
  if (!id.empty() && !MessageId::from_public_id(id)) fields.reject("id", "must be a message ID");
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  std::optional<double> seconds;
  if (retry_in) seconds = *retry_in;
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows = co_await lease->run(
      inbox::sql::nack{.worker = worker, .id = id, .error = error, .pause_seconds = seconds});
  co_return counted("nacked", rows.front().is_nacked ? 1 : 0);
}

Task<Response> extend(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  std::string worker;
  int32_t lease_seconds = 60;
  Fields fields(*document, "", problems);
  fields.require("worker");
  fields.read("worker", worker, kWorkerRule);
  fields.require("ids");
  const auto ids = read_ids(fields);
  fields.read("lease_seconds", lease_seconds, kLeaseRule, 60);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const double seconds = lease_seconds;
  const auto rows =
      co_await lease->run(inbox::sql::extend{.worker = worker, .ids = ids, .lease_seconds = seconds});
  co_return counted("extended", rows.front().extended);
}

}  // namespace

void add_inbox_routes(Routes& routes) {
  const std::string messages = "/v1/sources/{source}/messages";
  routes.add(Method::get, messages, Access::read, list);
  routes.add(Method::get, messages + "/{message}", Access::read, show);
  routes.add(Method::post, messages + "/retry", Access::operate, retry);
  routes.add(Method::post, messages + "/discard", Access::operate, discard);
  routes.add(Method::post, "/v1/inbox/claim", Access::operate, claim);
  routes.add(Method::post, "/v1/inbox/ack", Access::operate, ack);
  routes.add(Method::post, "/v1/inbox/nack", Access::operate, nack);
  routes.add(Method::post, "/v1/inbox/extend", Access::operate, extend);
}

}  // namespace postrider::api
