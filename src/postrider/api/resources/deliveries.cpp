// /v1/tenants/{tenant}/deliveries and /v1/deliveries: the delivery of each event to each endpoint.
#include <charconv>
#include <utility>

#include "postrider/api/resources/delivery_filter.hpp"
#include "postrider/api/resources/lists.hpp"
#include "postrider/api/wire/export.hpp"
#include "postrider/api/wire/json_writer.hpp"
#include "postrider/api/wire/page.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/api/wire/routes.hpp"
#include "postrider/history/attempt_rows.hpp"
#include "postrider/history/attempt_scan.hpp"
#include "postrider/history/deliveries.sql.hpp"
#include "postrider/history/delivery.sql.hpp"

namespace postrider::api {

namespace {

constexpr int kTimelineMax = 250;  // attempts shown with one delivery

}  // namespace

Task<Response> list_deliveries(Call& call) {
  Query query(call.request);
  DeliveryQuery wanted = read_delivery_query(call, query);
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const pg::Pool::Handle lease = co_await call.database();
  auto filter = co_await resolve(*lease, std::move(wanted));
  if (!filter) co_return call.reject(filter.error());
  if (!*filter) co_return Response::json(200, R"({"data":[]})");
  const auto scanned = co_await history::scan_deliveries(*lease, std::move(**filter));
  if (!scanned) co_return call.reject(invalid({{"cursor", "invalid cursor"}}));
  std::vector<std::string> items;
  runtime::Pause pause(call.services.loop);
  for (const history::Delivery& delivery : scanned->deliveries) {
    items.push_back(history::delivery_json(delivery, scanned->names, call.principal).text());
    co_await pause;
  }
  co_return page(items, scanned->next);
}

namespace {

Task<Response> list(Call& call) {
  if (!is_export(call)) return list_deliveries(call);
  return export_list(call, list_deliveries,
                     {"deliveries",
                      {"id",
                       "tenant_id",
                       "endpoint_id",
                       "url",
                       "event_id",
                       "event_type",
                       "subject",
                       "status",
                       "attempts",
                       "max_attempts",
                       "created_at",
                       "next_attempt_at",
                       "waiting_for",
                       "next_probe_at",
                       "give_up_at",
                       "last_attempt_at",
                       "last_status_code",
                       "last_error",
                       "last_error_detail",
                       "delivered_at",
                       "replay_id"}});
}

std::string dead_letter_json(const history::sql::dead_letter_of::Row& row) {
  JsonObject json;
  json.add("cause", row.cause)
      .add("dead_at", row.dead_at)
      .add("resolved_at", row.resolved_at)
      .add("resolution", row.resolution);
  return json.text();
}

std::optional<model::DeliveryId> delivery_of(const Call& call) {
  return model::DeliveryId::from_public_id(call.parameter("delivery"));
}

struct Shown {
  history::Delivery delivery;
  std::optional<base::Uuid> owner;
  std::string attempts = "[]";  // JSON
  std::string dead_letter = "null";
};

bool is_visible(const Call& call, const history::Delivery& delivery) {
  const bool is_of_tenant = call.request.path_parameters.front().name == "tenant";
  return !is_of_tenant || delivery.tenant == call.tenant();
}

Task<std::optional<Shown>> find(const Call& call, pg::Link& link, model::DeliveryId id) {
  const std::vector<base::Uuid> ids{id.uuid};
  const auto [queued_rows, past_rows, dead_letter_rows, attempt_rows] = co_await link.run(
      history::sql::queued_delivery{.delivery = id.uuid},
      history::sql::history_of_ids{.deliveries = ids, .smallest = id.uuid, .largest = id.uuid},
      history::sql::dead_letter_of{.delivery = id.uuid},
      history::sql::attempts_of{.delivery = id.uuid, .after = 0, .after_probe = 0, .rows = kTimelineMax});
  std::vector<history::Delivery> past = history::read_history(past_rows);
  if (queued_rows.empty() && past.empty()) co_return std::nullopt;
  Shown shown;
  if (!past.empty()) shown.delivery = std::move(past.front());
  if (!queued_rows.empty() &&
      (past_rows.empty() || shown.delivery.status == history::DeliveryStatus::retrying)) {
    const auto row = queued_rows.front();
    history::Delivery queued = history::read_queued(row);
    if (!past_rows.empty()) history::add_history(queued, shown.delivery);
    shown.delivery = std::move(queued);
    shown.owner = row.owner;
  }
  if (!dead_letter_rows.empty()) shown.dead_letter = dead_letter_json(dead_letter_rows.front());
  std::vector<std::string> attempts;
  for (const auto& row : attempt_rows) attempts.push_back(history::attempt_json(row, call.principal).text());
  shown.attempts = json_array(attempts);
  co_return shown;
}

Task<Response> show(Call& call) {
  const auto id = delivery_of(call);
  if (!id) co_return call.reject(unknown("delivery"));
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<Shown> shown = co_await find(call, *lease, *id);
  if (!shown || !is_visible(call, shown->delivery)) co_return call.reject(unknown("delivery"));
  std::vector<history::Delivery> only{shown->delivery};
  co_await history::mark_processing(*lease, only);
  co_await history::add_waits(*lease, only);
  const history::DeliveryNames names = co_await history::find_names(*lease, only);
  JsonObject json = history::delivery_json(only.front(), names, call.principal);
  if (shown->owner)
    json.add("claimed_by", model::NodeId{*shown->owner}.public_id());
  else
    json.raw("claimed_by", "null");
  json.raw("dead_letter", shown->dead_letter).raw("timeline", shown->attempts);
  co_return Response::json(200, json.text());
}

using AttemptPlace = history::AttemptKey::Rank;

std::string place_text(const history::sql::attempts_of::Row& row) {
  const AttemptPlace place = history::AttemptKey{{}, row.attempt, row.probed_attempt.value_or(0)}.rank();
  return std::to_string(place.attempt) + "," + std::to_string(place.probe);
}

// Empty: the start.
std::optional<AttemptPlace> parse_place(std::string_view text) {
  AttemptPlace place;
  if (text.empty()) return place;
  const char* const start = text.data();
  const char* const end = start + text.size();
  const auto attempt = std::from_chars(start, end, place.attempt);
  if (attempt.ec != std::errc() || attempt.ptr == end || *attempt.ptr != ',') return std::nullopt;
  const auto probe = std::from_chars(attempt.ptr + 1, end, place.probe);
  if (probe.ec != std::errc() || probe.ptr != end) return std::nullopt;
  return place;
}

Task<Response> attempts(Call& call) {
  Query query(call.request);
  const int limit = query.limit();
  const std::string after = query.after();
  const auto behind = parse_place(after);
  if (!behind) query.reject("cursor", "invalid cursor");
  FieldProblems problems = query.finish();
  if (!problems.empty()) co_return call.reject(invalid(std::move(problems)));
  const auto id = delivery_of(call);
  if (!id) co_return call.reject(unknown("delivery"));
  const pg::Pool::Handle lease = co_await call.database();
  const std::optional<Shown> shown = co_await find(call, *lease, *id);
  if (!shown || !is_visible(call, shown->delivery)) co_return call.reject(unknown("delivery"));
  const auto rows = co_await lease->run(history::sql::attempts_of{
      .delivery = id->uuid, .after = behind->attempt, .after_probe = behind->probe, .rows = limit + 1});
  std::vector<PageRow> items;
  for (const auto& row : rows)
    items.push_back({place_text(row), history::attempt_json(row, call.principal).text()});
  co_return page(std::move(items), limit);
}

}  // namespace

void add_delivery_routes(Routes& routes) {
  for (const std::string all : {"/v1/tenants/{tenant}/deliveries", "/v1/deliveries"}) {
    routes.add(Method::get, all, Access::read, list);
    routes.add(Method::get, all + "/{delivery}", Access::read, show);
    routes.add(Method::get, all + "/{delivery}/attempts", Access::read, attempts);
  }
}

}  // namespace postrider::api
