#include "postrider/replay/request.hpp"

#include <algorithm>
#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/columns.hpp"
#include "postrider/replay/candidates.hpp"
#include "postrider/replay/requests.sql.hpp"
#include "postrider/replay/tenants.sql.hpp"

namespace postrider::replay {

namespace {

using runtime::Task;

const std::vector<std::string> kCauses{"rejected", "gone",    "exhausted",
                                       "expired",  "blocked", "endpoint_disabled"};

Single::Outcome outcome_of(std::string_view text) {
  if (text == "made") return Single::Outcome::made;
  if (text == "unknown_delivery") return Single::Outcome::unknown_delivery;
  if (text == "endpoint_inactive") return Single::Outcome::endpoint_inactive;
  if (text == "event_gone") return Single::Outcome::event_gone;
  if (text == "event_erased") return Single::Outcome::event_erased;
  if (text == "too_fast") return Single::Outcome::too_fast;
  throw pg::Error(pg::Kind::other, "make_replay() returned an unknown outcome");
}

Replay read_replay(const pg::Rows& rows, size_t row) {
  Replay replay;
  size_t column = 0;
  replay.id = {rows.get<base::Uuid>(row, column++)};
  replay.kind = rows.get<std::string>(row, column++);
  replay.status = rows.get<std::string>(row, column++);
  replay.scope = rows.get<std::optional<std::string>>(row, column++);
  replay.endpoint = rows.get<std::optional<std::string>>(row, column++);
  replay.event_types = rows.get<std::optional<std::vector<std::string>>>(row, column++);
  replay.since = rows.get<std::optional<base::Timestamp>>(row, column++);
  replay.until = rows.get<std::optional<base::Timestamp>>(row, column++);
  replay.rate_per_second = rows.get<std::optional<double>>(row, column++);
  replay.reason = rows.get<std::string>(row, column++);
  replay.requested_by = rows.get<std::string>(row, column++);
  replay.on_behalf_of = registry::known(model::parse_actor(rows.get<std::string_view>(row, column++)));
  if (const auto old = rows.get<std::optional<base::Uuid>>(row, column++))
    replay.delivery = model::DeliveryId{*old};
  replay.is_counted = rows.get<bool>(row, column++);
  replay.matched = rows.get<int64_t>(row, column++);
  replay.queued = rows.get<int64_t>(row, column++);
  replay.delivered = rows.get<int64_t>(row, column++);
  replay.failed = rows.get<int64_t>(row, column++);
  replay.canceled = rows.get<int64_t>(row, column++);
  replay.created_at = rows.get<base::Timestamp>(row, column++);
  replay.started_at = rows.get<std::optional<base::Timestamp>>(row, column++);
  replay.finished_at = rows.get<std::optional<base::Timestamp>>(row, column++);
  return replay;
}

std::vector<std::string> public_ids(const std::vector<base::Uuid>& deliveries) {
  std::vector<std::string> ids;
  for (const auto& id : deliveries) ids.push_back(model::DeliveryId{id}.public_id());
  return ids;
}

// What was asked for, as the audit log shows it.
registry::Snapshot snapshot(const RangeRequest& request) {
  const Range& range = request.range;
  registry::Snapshot fields;
  fields.add("only", label(range.scope)).add("since", range.since).add("until", range.until);
  if (range.endpoint) fields.add("endpoint_id", range.endpoint->public_id());
  if (range.event_types) fields.add("event_types", *range.event_types);
  if (range.causes) fields.add("causes", *range.causes);
  if (range.deliveries) fields.add("ids", public_ids(*range.deliveries));
  fields.add("rate_per_second", request.rate_per_second);
  return fields;
}

}  // namespace

std::string_view label(Scope scope) {
  switch (scope) {
    case Scope::failed:
      return "failed";
    case Scope::missing:
      return "missing";
    case Scope::all:
      return "all";
  }
  return "";
}

std::optional<Scope> parse_scope(std::string_view text) {
  for (const Scope scope : {Scope::failed, Scope::missing, Scope::all})
    if (label(scope) == text) return scope;
  return std::nullopt;
}

Task<Single> replay_delivery(pg::Link& link, const registry::Caller& caller, SingleRequest request) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch make;
  make.with(sql::make_replay, request.tenant, request.delivery.uuid, request.reason, caller.id,
            request.not_before, singles_per_second_max, model::label(caller.actor));
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(make));
  const pg::Rows& row = answers.front();
  Single single;
  single.outcome = outcome_of(row.get<std::string_view>(0, 0));
  if (single.outcome != Single::Outcome::made) {
    co_await transaction.rollback();
    co_return single;
  }
  single.replay = {row.get<base::Uuid>(0, 1)};
  single.delivery = {row.get<base::Uuid>(0, 2)};
  registry::Snapshot after;
  after.add("delivery_id", single.delivery.public_id()).add("replay_id", single.replay.public_id());
  if (request.not_before) after.add("not_before", *request.not_before);
  pg::Batch note;
  registry::add_audit(note, caller,
                      {.action = "delivery.replay",
                       .tenant = request.tenant,
                       .object = request.delivery.public_id(),
                       .after = std::move(after),
                       .reason = request.reason});
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return single;
}

Task<std::vector<model::ReplayId>> request_ranges(pg::Link& link, const registry::Caller& caller,
                                                  const std::vector<RangeRequest>& requests) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch insert;
  for (const RangeRequest& request : requests) {
    const Range& range = request.range;
    std::optional<base::Uuid> endpoint;
    if (range.endpoint) endpoint = range.endpoint->uuid;
    insert.with(sql::insert_replay, range.tenant, label(range.scope), endpoint, range.event_types,
                range.causes, range.deliveries, range.since, range.until, request.rate_per_second,
                request.reason, caller.id, model::label(caller.actor));
  }
  const std::vector<pg::Rows> inserted = co_await transaction.run(std::move(insert));
  std::vector<model::ReplayId> ids;
  pg::Batch note;
  for (size_t i = 0; i < requests.size(); ++i) {
    ids.push_back({inserted[i].get<base::Uuid>(0, 0)});
    registry::add_audit(note, caller,
                        {.action = "replay.create",
                         .tenant = requests[i].range.tenant,
                         .object = ids.back().public_id(),
                         .after = snapshot(requests[i]),
                         .reason = requests[i].reason});
  }
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return ids;
}

Task<model::ReplayId> request_range(pg::Link& link, const registry::Caller& caller, RangeRequest request) {
  std::vector<RangeRequest> requests;
  requests.push_back(std::move(request));
  const std::vector<model::ReplayId> ids = co_await request_ranges(link, caller, requests);
  co_return ids.front();
}

Task<std::vector<TenantWithDeadLetters>> find_tenants(pg::Link& link, const Range& range, int limit) {
  std::vector<TenantWithDeadLetters> tenants;
  if (range.deliveries) {
    const auto [least, greatest] = std::minmax_element(range.deliveries->begin(), range.deliveries->end());
    const auto rows = co_await link.run(sql::tenants_of_dead_letters{
        .ids = *range.deliveries, .least = *least, .greatest = *greatest, .limit = limit});
    for (const auto& row : rows) tenants.push_back({std::string(row.tenant_id), row.delivery_ids});
  } else {
    const std::vector<std::string> causes = range.causes ? *range.causes : kCauses;
    const auto rows = co_await link.run(sql::tenants_with_dead_letters{.causes = causes,
                                                                       .first = model::id_floor(range.since),
                                                                       .before = model::id_floor(range.until),
                                                                       .limit = limit});
    for (const auto& row : rows) tenants.push_back({std::string(row.tenant_id)});
  }
  co_return tenants;
}

MatchCount::MatchCount(Range range) : range_(std::move(range)), cursor_(start_of(range_)) {}

Task<void> MatchCount::look(pg::Link& link) {
  const Look look;
  pg::Batch search;
  add_search(search, range_, cursor_, look);
  const std::vector<pg::Rows> answers = co_await link.run(std::move(search));
  const Found found = read_found(answers.front(), range_, cursor_, look);
  matched_ += static_cast<int64_t>(found.candidates.size());
  cursor_ = found.next;
  is_complete_ = found.is_last;
}

Task<std::optional<Replay>> find_replay(pg::Link& link, model::TenantId tenant, model::ReplayId id) {
  pg::Params params(tenant, id.uuid);
  const pg::Rows rows = co_await link.run_one(sql::find_replay, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  co_return read_replay(rows, 0);
}

Task<std::vector<Replay>> list_replays(pg::Link& link, ListFilter filter) {
  base::Uuid before;
  before.bytes.fill(0xFF);
  if (filter.before) before = filter.before->uuid;
  pg::Params params(filter.tenant, before, filter.status, filter.limit);
  const pg::Rows rows = co_await link.run_one(sql::list_replays, std::move(params));
  std::vector<Replay> replays;
  for (size_t row = 0; row < rows.size(); ++row) replays.push_back(read_replay(rows, row));
  co_return replays;
}

Task<bool> cancel_replay(pg::Link& link, const registry::Caller& caller, CancelRequest request) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch cancel;
  cancel.with(sql::cancel_replay, request.tenant, request.id.uuid);
  const std::vector<pg::Rows> answers = co_await transaction.run(std::move(cancel));
  if (answers.front().empty()) {
    co_await transaction.rollback();
    co_return false;
  }
  pg::Batch note;
  registry::add_audit(note, caller,
                      {.action = "replay.cancel",
                       .tenant = request.tenant,
                       .object = request.id.public_id(),
                       .reason = request.reason});
  const std::vector<pg::Rows> noted = co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return true;
}

Task<std::optional<FoundEndpoint>> find_endpoint(pg::Link& link, model::TenantId tenant,
                                                 std::string public_id) {
  pg::Params params(tenant, public_id);
  const pg::Rows rows = co_await link.run_one(sql::find_endpoint, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  FoundEndpoint found;
  found.id = {rows.get<base::Uuid>(0, 0)};
  found.is_active = rows.get<std::string_view>(0, 1) != "disabled";
  co_return found;
}

Task<std::vector<model::TenantId>> find_endpoint_tenants(pg::Link& link, std::string public_id) {
  const auto rows = co_await link.run(sql::tenants_of_endpoint{.public_id = public_id});
  std::vector<model::TenantId> tenants;
  for (const auto& row : rows) tenants.push_back(std::string(row.tenant_id));
  co_return tenants;
}

}  // namespace postrider::replay
