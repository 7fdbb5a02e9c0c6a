// /v1/outboxes: the relayed outboxes, their state, and rows that were set aside.
#include <charconv>
#include <utility>

#include "postrider/api/resources/outbox_database.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/outbox/capture_state.hpp"
#include "postrider/outbox/sources.hpp"
#include "postrider/outbox/state.hpp"
#include "postrider/pg/display_url.hpp"

namespace postrider::api {

namespace {

constexpr size_t kUrlBytesMax = 4'096;
constexpr size_t kReleasedMax = 10'000;
constexpr TextRule kReasonRule{.bytes_max = 1'000};
constexpr TextRule kOnInvalidRule{.bytes_max = 16};

http::Problem still_captured() {
  return problem(
      409, "still-captured",
      "The outbox still has a replication slot. Set its mode to table and wait until capture is off.");
}

http::Problem data_cut(int64_t row) {
  return problem(409, "data-cut",
                 "Only the beginning of the data of row " + std::to_string(row) +
                     " was kept, so it cannot be published. Publish the event again and discard the row.");
}

std::string configured_json(const config::OutboxConfig& outbox) {
  JsonObject json;
  json.add("id", outbox.name)
      .add("database_url", pg::display_url(outbox.database_url))
      .add("configured_by", "file")
      .raw("created_at", "null")
      .raw("updated_at", "null");
  return json.text();
}

std::string source_json(const outbox::Source& source) {
  JsonObject json;
  json.add("id", source.id)
      .add("database_url", source.display_url)
      .add("configured_by", "api")
      .add("created_at", source.created_at)
      .add("updated_at", source.updated_at);
  return json.text();
}

Task<Response> list(Call& call) {
  const pg::Pool::Handle lease = co_await call.database();
  auto listing = outbox::list_sources(*lease);
  const auto sources = co_await listing;
  std::vector<std::string> items;
  JsonObject local;
  local.add("id", outbox::kLocal)
      .raw("database_url", "null")
      .raw("configured_by", "null")
      .raw("created_at", "null")
      .raw("updated_at", "null");
  items.push_back(local.text());
  for (const auto& outbox : call.services.config.outboxes) items.push_back(configured_json(outbox));
  for (const auto& source : sources)
    if (find_configured(call, source.id) == nullptr) items.push_back(source_json(source));
  JsonObject json;
  json.raw("data", json_array(items));
  co_return Response::json(200, json.text());
}

std::string failing_json(const outbox::FailingRow& row) {
  JsonObject json;
  json.add("id", row.id)
      .add("event_id", row.event_id)
      .add("tenant_id", row.tenant_id)
      .add("type", row.type)
      .add("attempts", row.attempts)
      .add("last_error", row.last_error)
      .add("created_at", row.created_at)
      .add("next_attempt_at", row.next_attempt_at);
  return json.text();
}

std::string state_json(const std::string& id, const std::vector<pg::Rows>& results) {
  const outbox::OutboxState state = outbox::read_state(results);
  const outbox::Waiting waiting = outbox::read_waiting(results);
  std::vector<std::string> failing;
  for (const auto& row : waiting.failing_rows) failing.push_back(failing_json(row));
  JsonObject json;
  json.add("id", id)
      .add("on_invalid", outbox::read_on_invalid(results))
      .add("oldest_at", state.oldest_at)
      .add("waiting", waiting.waiting)
      .add("failing", waiting.failing)
      .raw("failing_rows", json_array(failing))
      .add("stuck", state.stuck)
      .add("relay", state.relay)
      .add("relay_beat_at", state.relay_beat_at)
      .add("damage", state.damage);
  return json.text();
}

Task<Response> show(Call& call) {
  const std::string id = call.parameter("outbox");
  auto running = run_there(call, id, outbox::status_batch());
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  try {
    co_return Response::json(200, state_json(id, *results));
  } catch (const pg::Error& error) {
    co_return call.reject(unusable_outbox(error));
  }
}

Task<Response> update(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  std::string on_invalid;
  FieldProblems problems;
  Fields fields(*document, "", problems);
  fields.require("on_invalid");
  fields.read("on_invalid", on_invalid, kOnInvalidRule);
  fields.finish();
  if (problems.empty() && on_invalid != "refuse" && on_invalid != "set_aside")
    fields.reject("on_invalid", "must be refuse or set_aside");
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const std::string id = call.parameter("outbox");
  auto running = run_there(call, id, outbox::set_on_invalid_batch(on_invalid),
                           outbox::on_invalid_note(call.caller(), id, on_invalid));
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  auto showing = show(call);
  co_return co_await showing;
}

Task<Response> put(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  const std::string id = call.parameter("outbox");
  std::string url;
  FieldProblems problems;
  Fields fields(*document, "", problems);
  fields.require("database_url");
  fields.read("database_url", url, {.bytes_max = kUrlBytesMax});
  fields.finish();
  const auto shown = pg::display_url(url);
  if (problems.empty() && !shown) fields.reject("database_url", "must be a Postgres connection string");
  if (problems.empty() && (!model::is_caller_id(id) || id == outbox::kLocal))
    fields.reject("id", "must be 1 to 64 of A-Z, a-z, 0-9, _ and -, and not local");
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  if (find_configured(call, id) != nullptr) co_return call.reject(configured_by_file("outbox"));
  outbox::Source source;
  source.id = id;
  source.display_url = *shown;
  source.sealed = outbox::seal_url(call.services.registry.keys, id, url);
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  auto putting = outbox::put_source(*lease, caller, std::move(source));
  const bool is_new = co_await putting;
  auto finding = outbox::find_source(*lease, id);
  const auto found = co_await finding;
  if (!found) co_return call.reject(unknown_outbox());
  co_return Response::json(is_new ? 201 : 200, source_json(*found));
}

// A replication slot without a reader makes its server keep the write-ahead log until the disk is full.
Task<bool> has_slot(Call& call, std::string id) {
  auto asking = run_there(call, std::move(id), outbox::capture_state_batch());
  const auto results = co_await asking;
  // It cannot be queried if it is unreachable or damaged, or has no outbox.
  try {
    co_return results&& outbox::read_capture_state(results->back()).slot.has_value();
  } catch (const pg::Error&) {
    co_return false;
  }
}

Task<Response> remove(Call& call) {
  if (find_configured(call, call.parameter("outbox")) != nullptr)
    co_return call.reject(configured_by_file("outbox"));
  auto asking = has_slot(call, call.parameter("outbox"));
  const bool is_captured = co_await asking;
  if (is_captured) co_return call.reject(still_captured());
  const pg::Pool::Handle lease = co_await call.database();
  const registry::Caller caller = call.caller();
  auto deleting = outbox::delete_source(*lease, caller, call.parameter("outbox"));
  const bool was_there = co_await deleting;
  if (!was_there) co_return call.reject(unknown_outbox());
  co_return Response::empty(204);
}

std::string stuck_json(const outbox::StuckRow& row) {
  JsonObject json;
  json.add("id", row.id)
      .add("event_id", row.event_id)
      .add("tenant_id", row.tenant_id)
      .add("type", row.type)
      .add("attempts", row.attempts)
      .add("last_error", row.last_error)
      .add("created_at", row.created_at)
      .add("set_aside_at", row.set_aside_at)
      .add("cut_from_bytes", row.cut_from_bytes);
  return json.text();
}

Task<Response> stuck(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  const std::string after = query.after();
  int64_t behind = 0;
  const auto read = std::from_chars(after.data(), after.data() + after.size(), behind);
  if (!after.empty() && (read.ec != std::errc() || read.ptr != after.data() + after.size()))
    query.reject("cursor", "invalid cursor");
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  auto running = run_there(call, call.parameter("outbox"), outbox::stuck_batch(behind, limit + 1));
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  std::vector<PageRow> rows;
  try {
    for (const auto& row : outbox::read_stuck(results->front()))
      rows.push_back({std::to_string(row.id), stuck_json(row)});
  } catch (const pg::Error& error) {
    co_return call.reject(unusable_outbox(error));
  }
  co_return page(std::move(rows), limit);
}

std::optional<std::vector<int64_t>> read_ids(Fields& fields) {
  const boost::json::value* given = fields.take("ids");
  if (given == nullptr || given->is_null()) return std::nullopt;
  std::vector<int64_t> ids;
  if (!given->is_array() || given->as_array().size() > kReleasedMax) {
    fields.reject("ids", "must be an array of at most 10,000 row IDs");
    return ids;
  }
  for (size_t i = 0; i < given->as_array().size(); ++i) {
    const auto& item = given->as_array()[i];
    if (item.is_int64())
      ids.push_back(item.as_int64());
    else
      fields.reject("ids", i, "must be the ID of a row");
  }
  return ids;
}

Task<Response> release(Call& call) {
  const auto document = parse_body(call.request, Body::may_be_empty);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Fields fields(*document, "", problems);
  const auto ids = read_ids(fields);
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const std::string id = call.parameter("outbox");
  auto running = run_there(call, id, outbox::release_batch(ids),
                           outbox::stuck_note(call.caller(), id, {"outbox.release", ids}));
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  const outbox::Released released = outbox::read_released(*results);
  if (ids && !released.cut.empty()) co_return call.reject(data_cut(released.cut.front()));
  JsonObject json;
  json.add("released", released.rows).add("cut", static_cast<int64_t>(released.cut.size()));
  co_return Response::json(200, json.text());
}

Task<Response> discard(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Fields fields(*document, "", problems);
  const auto ids = read_ids(fields);
  bool is_all = false;
  std::optional<std::string> reason;
  fields.read("all", is_all);
  fields.read("reason", reason, kReasonRule);
  if (problems.empty() && ids.has_value() == is_all) fields.reject("ids", "give either ids or \"all\": true");
  fields.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const std::string id = call.parameter("outbox");
  auto running = run_there(call, id, outbox::discard_batch(ids),
                           outbox::stuck_note(call.caller(), id, {"outbox.discard", ids, reason}));
  const auto results = co_await running;
  if (!results) co_return call.reject(results.error());
  JsonObject json;
  json.add("discarded", results->front().affected_rows());
  co_return Response::json(200, json.text());
}

}  // namespace

void add_outbox_routes(Routes& routes) {
  routes.add(Method::get, "/v1/outboxes", Access::operate, list);
  routes.add(Method::get, "/v1/outboxes/{outbox}", Access::operate, show);
  routes.add(Method::put, "/v1/outboxes/{outbox}", Access::administer, put);
  routes.add(Method::patch, "/v1/outboxes/{outbox}", Access::administer, update);
  routes.add(Method::delete_, "/v1/outboxes/{outbox}", Access::administer, remove);
  routes.add(Method::get, "/v1/outboxes/{outbox}/stuck", Access::operate, stuck);
  routes.add(Method::post, "/v1/outboxes/{outbox}/stuck/release", Access::operate, release);
  routes.add(Method::post, "/v1/outboxes/{outbox}/stuck/discard", Access::operate, discard);
}

}  // namespace postrider::api
