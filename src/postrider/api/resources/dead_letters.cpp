// /v1/tenants/{tenant}/dead-letters and /v1/dead-letters: list, summary, discard. They are replayed by a
// replay.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/resources/lists.hpp"
#include "postrider/api/wire/document.hpp"
#include "postrider/api/wire/export.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/delivery/settle/discard.sql.hpp"
#include "postrider/history/dead_letters.sql.hpp"
#include "postrider/registry/audit.hpp"
#include "postrider/registry/tenants.hpp"

namespace postrider::api {

namespace {

constexpr int kScannedMax = 2'000;
constexpr int kSummaryMax = 1'000;
constexpr int kDiscardChunk = 1'000;
constexpr int kDiscardMax = 100'000;  // by one call; `more` says that there is more
constexpr size_t kIdsMax = 1'000;
constexpr size_t kReasonMax = 1'000;

struct Filter {
  std::optional<std::string> tenant, endpoint_name, cause;
  std::optional<history::LaneRef> endpoint;
  std::optional<bool> resolved;
  base::Uuid from, before;
  int limit = 0;
};

std::optional<std::string> tenant_of(const Call& call) {
  const auto& parameters = call.request.path_parameters;
  if (parameters.empty() || parameters.front().name != "tenant") return std::nullopt;
  return call.tenant();
}

Filter read_filter(const Call& call, Query& query) {
  Filter filter;
  filter.tenant = tenant_of(call);
  filter.endpoint_name = query.value("endpoint");
  filter.cause = query.value("cause");
  if (filter.cause && !is_cause(*filter.cause)) query.reject("cause", cause_rule);
  if (const auto resolved = query.value("resolved")) {
    if (*resolved != "true" && *resolved != "false") query.reject("resolved", "must be true or false");
    filter.resolved = *resolved == "true";
  }
  filter.before.bytes.fill(0xFF);
  const auto [since, until] = query.range();
  if (since) filter.from = model::id_floor(*since);
  if (until) filter.before = model::id_floor(*until);
  filter.limit = query.limit();
  const std::string after = query.after();
  if (after.empty()) return filter;
  if (const auto last = base::Uuid::from_hex(after))
    filter.before = std::min(filter.before, *last);
  else
    query.reject("cursor", "invalid cursor");
  return filter;
}

// The tenant is there, and the endpoint is known.
Task<std::optional<http::Problem>> resolve(pg::Link& link, Filter& filter) {
  if (filter.tenant) {
    const std::optional<registry::Tenant> known = co_await registry::find_tenant(link, *filter.tenant);
    if (!known) co_return unknown("tenant");
  }
  if (!filter.endpoint_name) co_return std::nullopt;
  const auto lane = co_await find_lane(link, filter.tenant, *filter.endpoint_name);
  if (!lane) co_return lane.error();
  filter.endpoint = *lane;
  co_return std::nullopt;
}

using LetterRow = history::sql::DeadLetterRow;

Task<pg::RowList<LetterRow>> find_letters(pg::Link& link, const Filter& filter, int rows_max) {
  const base::Uuid before = filter.before, from = filter.from;
  pg::RowList<LetterRow> rows;
  if (filter.endpoint)
    rows = co_await link.run(history::sql::dead_letters_of_endpoint{
        .before = before, .from = from, .endpoint = filter.endpoint->id.uuid, .rows = rows_max});
  else if (filter.tenant && filter.cause && filter.resolved == false)
    rows = co_await link.run(history::sql::unresolved_of_cause{
        .before = before, .from = from, .tenant = *filter.tenant, .cause = *filter.cause, .rows = rows_max});
  else if (filter.tenant)
    rows = co_await link.run(history::sql::dead_letters_of_tenant{
        .before = before, .from = from, .tenant = *filter.tenant, .rows = rows_max});
  else
    rows = co_await link.run(
        history::sql::dead_letters_of_all{.before = before, .from = from, .rows = rows_max});
  co_return rows;
}

bool accepts(const Filter& filter, const LetterRow& row) {
  if (filter.cause && row.cause != *filter.cause) return false;
  return !filter.resolved || *filter.resolved == row.resolved_at.has_value();
}

history::Delivery read_letter(const LetterRow& row) {
  history::Delivery letter;
  letter.id = {row.delivery_id};
  letter.tenant = row.tenant_id;
  letter.endpoint = {row.endpoint_id};
  letter.event = {row.event_id};
  letter.status = history::DeliveryStatus::dead_letter;
  letter.attempts = row.attempts;
  letter.last_status_code = row.status_code;
  letter.last_error = row.error;
  letter.last_error_detail = row.error_detail;
  letter.created_at = row.created_at;
  return letter;
}

std::string letter_json(const LetterRow& row, const history::DeliveryNames& names,
                        const registry::Principal& reader) {
  JsonObject json = history::delivery_json(read_letter(row), names, reader);
  json.add("cause", row.cause)
      .add("dead_at", row.dead_at)
      .add("resolved_at", row.resolved_at)
      .add("resolution", row.resolution);
  return json.text();
}

}  // namespace

Task<Response> list_dead_letters(Call& call) {
  Query query(call.request);
  Filter filter = read_filter(call, query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<http::Problem> problem = co_await resolve(*lease, filter);
  if (problem) co_return call.reject(*problem);
  const bool is_filtered = filter.cause || filter.resolved;
  const int scanned_max = is_filtered ? kScannedMax : filter.limit + 1;
  const pg::RowList<LetterRow> rows = co_await find_letters(*lease, filter, scanned_max);
  std::vector<size_t> taken;
  std::vector<history::Delivery> letters;
  size_t row = 0;
  for (; row < rows.size() && taken.size() < static_cast<size_t>(filter.limit); ++row) {
    if (!accepts(filter, rows[row])) continue;
    taken.push_back(row);
    letters.push_back(read_letter(rows[row]));
  }
  const history::DeliveryNames names = co_await history::find_names(*lease, letters);
  std::vector<std::string> items;
  for (const size_t each : taken) items.push_back(letter_json(rows[each], names, call.principal));
  std::optional<std::string> next;
  if (row < rows.size() || rows.size() == static_cast<size_t>(scanned_max))
    next = rows[row - 1].delivery_id.hex();
  co_return page(items, next);
}

namespace {

Task<Response> list(Call& call) {
  if (!is_export(call)) return list_dead_letters(call);
  return export_list(call, list_dead_letters,
                     {"dead-letters",
                      {"id", "tenant_id", "endpoint_id", "url", "event_id", "event_type", "subject", "cause",
                       "attempts", "created_at", "dead_at", "last_status_code", "last_error",
                       "last_error_detail", "resolved_at", "resolution"}});
}

Task<Response> summary(Call& call) {
  Query query(call.request);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  Filter filter;
  filter.tenant = tenant_of(call);
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<http::Problem> problem = co_await resolve(*lease, filter);
  if (problem) co_return call.reject(*problem);
  const auto rows =
      co_await lease->run(history::sql::dead_letter_summary{.tenant = filter.tenant, .rows = kSummaryMax});
  std::vector<std::string> items;
  int64_t total = 0;
  for (const auto& row : rows) {
    JsonObject item;
    item.add("tenant_id", row.tenant_id)
        .add("endpoint_id", row.public_id)
        .add("url", row.url)
        .add("cause", row.cause)
        .add("unresolved", row.unresolved);
    total += row.unresolved;
    items.push_back(item.text());
  }
  JsonObject json;
  json.raw("data", json_array(items)).add("unresolved", total);
  co_return Response::json(200, json.text());
}

struct Discard {
  Filter filter;
  std::vector<base::Uuid> ids;  // empty: by filter
  std::optional<std::string> reason, since, until;
};

void read_ids(const boost::json::value& value, Fields& fields, Discard& wanted) {
  const auto* array = value.if_array();
  if (array == nullptr || array->empty() || array->size() > kIdsMax) {
    fields.reject("ids", "must be an array of 1 to 1,000 delivery IDs");
    return;
  }
  for (size_t i = 0; i < array->size(); ++i) {
    const auto* text = (*array)[i].if_string();
    const auto id = text ? model::DeliveryId::from_public_id(std::string_view(*text)) : std::nullopt;
    if (id)
      wanted.ids.push_back(id->uuid);
    else
      fields.reject("ids", i, "must be a delivery ID, such as dlv_01980a6c7d5e7b0e9d0c2f6f8a4b3c21");
  }
  std::sort(wanted.ids.begin(), wanted.ids.end());
}

std::optional<base::Uuid> read_floor(Fields& fields, std::string_view name,
                                     std::optional<std::string>& text) {
  fields.read(name, text, TextRule{.bytes_max = 64});
  if (!text) return std::nullopt;
  const auto time = base::parse_rfc3339(*text);
  if (time) return model::id_floor(*time);
  fields.reject(name, time_rule);
  return std::nullopt;
}

Discard read_discard(const Call& call, const boost::json::object& document, FieldProblems& problems) {
  Discard wanted;
  Filter& filter = wanted.filter;
  filter.tenant = tenant_of(call);
  filter.before.bytes.fill(0xFF);
  Fields fields(document, "", problems);
  fields.read("reason", wanted.reason, TextRule{.bytes_max = kReasonMax});
  fields.read("endpoint", filter.endpoint_name, TextRule{.bytes_max = 64});
  fields.read("cause", filter.cause, TextRule{.bytes_max = 32});
  if (filter.cause && !is_cause(*filter.cause)) fields.reject("cause", cause_rule);
  if (const auto floor = read_floor(fields, "since", wanted.since)) filter.from = *floor;
  if (const auto floor = read_floor(fields, "until", wanted.until)) filter.before = *floor;
  bool is_all = false;
  fields.read("all", is_all);
  if (const auto* ids = fields.take("ids")) read_ids(*ids, fields, wanted);
  const bool has_filter = filter.endpoint_name || filter.cause || wanted.since || wanted.until || is_all;
  if (problems.empty() && wanted.ids.empty() == !has_filter)
    fields.reject("ids", "give either ids or a filter: endpoint, cause, since, until, or \"all\": true");
  fields.finish();
  return wanted;
}

// Takes a connection for each chunk, so that others have their turn in between.
Task<int64_t> discard_matching(const Call& call, const Discard& wanted) {
  int64_t discarded = 0;
  const Filter& filter = wanted.filter;
  std::optional<base::Uuid> endpoint;
  if (filter.endpoint) endpoint = filter.endpoint->id.uuid;
  while (discarded < kDiscardMax) {
    const pg::Pool::Handle lease = co_await call.database();
    const auto rows = co_await lease->run(delivery::sql::discard_some{.tenant = filter.tenant,
                                                                      .endpoint = endpoint,
                                                                      .cause = filter.cause,
                                                                      .before = filter.before,
                                                                      .from = filter.from,
                                                                      .rows_max = kDiscardChunk});
    discarded += static_cast<int64_t>(rows.size());
    if (rows.size() < static_cast<size_t>(kDiscardChunk)) break;
  }
  co_return discarded;
}

Task<int64_t> discard_named(const Call& call, const Discard& wanted) {
  const pg::Pool::Handle lease = co_await call.database();
  const auto rows = co_await lease->run(delivery::sql::discard_ids{.deliveries = wanted.ids,
                                                                   .smallest = wanted.ids.front(),
                                                                   .largest = wanted.ids.back(),
                                                                   .tenant = wanted.filter.tenant});
  co_return static_cast<int64_t>(rows.size());
}

pg::Batch discard_note(const Call& call, const boost::json::object& document, const Discard& wanted) {
  registry::Snapshot asked;
  for (const auto& [name, value] : document)
    if (name != "reason") asked.raw_or_null(name, boost::json::serialize(value));
  pg::Batch note;
  registry::add_audit(note, call.caller(),
                      {.action = "dead_letter.discard",
                       .tenant = wanted.filter.tenant,
                       .object = "dead_letters",
                       .after = std::move(asked),
                       .reason = wanted.reason});
  return note;
}

Task<Response> discard(Call& call) {
  const auto document = parse_body(call.request);
  if (!document) co_return call.reject(document.error());
  FieldProblems problems;
  Discard wanted = read_discard(call, *document, problems);
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  {
    const pg::Pool::Handle lease = co_await call.database();
    const std::optional<http::Problem> problem = co_await resolve(*lease, wanted.filter);
    if (problem) co_return call.reject(*problem);
    // Before it is done: should the work be interrupted, the log has the request.
    pg::Batch note = discard_note(call, *document, wanted);
    co_await lease->run(std::move(note));
  }
  int64_t discarded = 0;
  if (wanted.ids.empty())
    discarded = co_await discard_matching(call, wanted);
  else
    discarded = co_await discard_named(call, wanted);
  JsonObject json;
  json.add("discarded", discarded).add("more", discarded >= kDiscardMax);
  co_return Response::json(200, json.text());
}

}  // namespace

void add_dead_letter_routes(Routes& routes) {
  for (const std::string all : {"/v1/tenants/{tenant}/dead-letters", "/v1/dead-letters"}) {
    routes.add(Method::get, all, Access::read, list);
    routes.add(Method::get, all + "/summary", Access::read, summary);
    routes.add(Method::post, all + "/discard", Access::operate, discard);
  }
}

}  // namespace postrider::api
