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

Single::Result outcome_of(std::string_view text) {
  if (text == "created") return Single::Result::made;
  if (text == "unknown_delivery") return Single::Result::unknown_delivery;
  if (text == "endpoint_inactive") return Single::Result::endpoint_inactive;
  if (text == "event_gone") return Single::Result::event_gone;
  if (text == "event_erased") return Single::Result::event_erased;
  if (text == "too_fast") return Single::Result::too_fast;
  throw pg::Error(pg::Kind::other, "create_replay() returned an unknown outcome");
}

Replay read_replay(const sql::ReplayRow& row) {
  Replay replay;
  replay.id = {row.id};
  replay.kind = row.kind;
  replay.status = row.status;
  replay.scope = row.scope;
  replay.endpoint = row.endpoint_public_id;
  if (row.event_types) replay.event_types.emplace(row.event_types->begin(), row.event_types->end());
  replay.since = row.since;
  replay.until = row.until;
  replay.rate_per_second = row.rate_per_second;
  replay.reason = row.reason;
  replay.requested_by = row.requested_by;
  replay.on_behalf_of = registry::known(model::parse_actor(row.on_behalf_of));
  if (row.delivery_id) replay.delivery = model::DeliveryId{*row.delivery_id};
  replay.is_counted = row.is_counted;
  replay.matched = row.matched;
  replay.queued = row.queued;
  replay.delivered = row.delivered;
  replay.failed = row.failed;
  replay.canceled = row.canceled;
  replay.created_at = row.created_at;
  replay.started_at = row.started_at;
  replay.finished_at = row.finished_at;
  return replay;
}

std::vector<std::string> public_ids(const std::vector<base::Uuid>& deliveries) {
  std::vector<std::string> ids;
  for (const auto& id : deliveries) ids.push_back(model::DeliveryId{id}.public_id());
  return ids;
}

// The request as the audit log shows it.
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
  const auto rows = co_await transaction.run(sql::create_replay{.tenant = request.tenant,
                                                                .delivery = request.delivery.uuid,
                                                                .reason = request.reason,
                                                                .requested_by = caller.id,
                                                                .due_at = request.not_before,
                                                                .per_second_max = kSinglesPerSecondMax,
                                                                .actor = model::label(caller.actor)});
  const auto row = rows.front();
  Single single;
  single.outcome = outcome_of(row.outcome);
  if (single.outcome != Single::Result::made) {
    co_await transaction.rollback();
    co_return single;
  }
  single.replay = {row.replay_id.value()};
  single.delivery = {row.delivery_id.value()};
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
  co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return single;
}

Task<std::vector<model::ReplayId>> request_ranges(pg::Link& link, const registry::Caller& caller,
                                                  const std::vector<RangeRequest>& requests) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch insert;
  std::vector<pg::Pending<sql::insert_replay>> pending;
  for (const RangeRequest& request : requests) {
    const Range& range = request.range;
    std::optional<base::Uuid> endpoint;
    if (range.endpoint) endpoint = range.endpoint->uuid;
    pending.push_back(insert.add(sql::insert_replay{.tenant = range.tenant,
                                                    .scope = label(range.scope),
                                                    .endpoint = endpoint,
                                                    .event_types = range.event_types,
                                                    .causes = range.causes,
                                                    .deliveries = range.deliveries,
                                                    .since = range.since,
                                                    .until = range.until,
                                                    .rate_per_second = request.rate_per_second,
                                                    .reason = request.reason,
                                                    .requested_by = caller.id,
                                                    .actor = model::label(caller.actor)}));
  }
  pg::Results inserted = co_await transaction.run(std::move(insert));
  std::vector<model::ReplayId> ids;
  pg::Batch note;
  for (size_t i = 0; i < requests.size(); ++i) {
    ids.push_back({inserted.take(pending[i]).front().id});
    registry::add_audit(note, caller,
                        {.action = "replay.create",
                         .tenant = requests[i].range.tenant,
                         .object = ids.back().public_id(),
                         .after = snapshot(requests[i]),
                         .reason = requests[i].reason});
  }
  co_await transaction.run(std::move(note));
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
  auto searching = find_candidates(link, range_, cursor_, look);
  const Found found = co_await searching;
  matched_ += static_cast<int64_t>(found.candidates.size());
  cursor_ = found.next;
  is_complete_ = found.is_last;
}

Task<std::optional<Replay>> find_replay(pg::Link& link, model::TenantId tenant, model::ReplayId id) {
  const auto rows = co_await link.run(sql::find_replay{.tenant = tenant, .replay = id.uuid});
  if (rows.empty()) co_return std::nullopt;
  co_return read_replay(rows.front());
}

Task<std::vector<Replay>> list_replays(pg::Link& link, ListFilter filter) {
  base::Uuid before;
  before.bytes.fill(0xFF);
  if (filter.before) before = filter.before->uuid;
  const auto rows = co_await link.run(sql::list_replays{
      .tenant = filter.tenant, .before = before, .status = filter.status, .rows = filter.limit});
  std::vector<Replay> replays;
  for (const auto& row : rows) replays.push_back(read_replay(row));
  co_return replays;
}

Task<bool> cancel_replay(pg::Link& link, const registry::Caller& caller, CancelRequest request) {
  pg::Transaction transaction = co_await link.begin();
  const auto canceled =
      co_await transaction.run(sql::cancel_replay{.tenant = request.tenant, .replay = request.id.uuid});
  if (canceled.empty()) {
    co_await transaction.rollback();
    co_return false;
  }
  pg::Batch note;
  registry::add_audit(note, caller,
                      {.action = "replay.cancel",
                       .tenant = request.tenant,
                       .object = request.id.public_id(),
                       .reason = request.reason});
  co_await transaction.run(std::move(note));
  co_await transaction.commit();
  co_return true;
}

Task<std::optional<FoundEndpoint>> find_endpoint(pg::Link& link, model::TenantId tenant,
                                                 std::string public_id) {
  const auto rows = co_await link.run(sql::find_endpoint{.tenant = tenant, .public_id = public_id});
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.front();
  FoundEndpoint found;
  found.id = {row.id};
  found.is_active = row.status != "disabled";
  co_return found;
}

Task<std::vector<model::TenantId>> find_endpoint_tenants(pg::Link& link, std::string public_id) {
  const auto rows = co_await link.run(sql::tenants_of_endpoint{.public_id = public_id});
  std::vector<model::TenantId> tenants;
  for (const auto& row : rows) tenants.push_back(std::string(row.tenant_id));
  co_return tenants;
}

}  // namespace postrider::replay
