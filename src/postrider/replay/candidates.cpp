#include "postrider/replay/candidates.hpp"

#include <algorithm>

#include "postrider/replay/candidates.sql.hpp"

namespace postrider::replay {

namespace {

std::optional<base::Uuid> uuid_of(const std::optional<model::EndpointId>& endpoint) {
  if (!endpoint) return std::nullopt;
  return endpoint->uuid;
}

}  // namespace

base::Uuid last_uuid() {
  base::Uuid id;
  id.bytes.fill(0xFF);
  return id;
}

base::Uuid successor(base::Uuid id) {
  for (size_t i = id.bytes.size(); i-- > 0;)
    if (++id.bytes[i] != 0) break;
  return id;
}

Cursor start_of(const Range& range) {
  return {model::id_floor(range.since), base::Uuid{}};
}

void add_search(pg::Batch& batch, const Range& range, const Cursor& from, const Look& look) {
  const base::Uuid before = model::id_floor(range.until);
  if (range.scope == Scope::failed)
    batch.with(sql::failed_candidates, range.tenant, uuid_of(range.endpoint), range.event_types, range.causes,
               range.deliveries, from.id, before, look.rows_max, look.candidates_max);
  else
    batch.with(sql::event_candidates, range.tenant, uuid_of(range.endpoint), range.event_types,
               range.scope == Scope::missing, from.id, from.endpoint, before, look.rows_max,
               look.candidates_max);
}

Found read_found(const pg::Rows& rows, const Range& range, const Cursor& from, const Look& look) {
  enum Column : size_t { looked_at, last, event, endpoint, origin, main = origin };
  Found found;
  const bool is_failed = range.scope == Scope::failed;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows.is_null(row, event)) continue;
    Candidate candidate{rows.get<base::Uuid>(row, event), rows.get<base::Uuid>(row, endpoint), std::nullopt};
    if (is_failed) candidate.origin = rows.get<base::Uuid>(row, origin);
    found.candidates.push_back(candidate);
    found.next = is_failed ? Cursor{*candidate.origin, base::Uuid{}}
                           : Cursor{rows.get<base::Uuid>(row, main), candidate.endpoint};
  }
  const bool is_full = found.candidates.size() == static_cast<size_t>(look.candidates_max);
  if (is_full) return found;
  found.is_last = rows.get<int64_t>(0, looked_at) < look.rows_max;
  found.next = {rows.get<std::optional<base::Uuid>>(0, last).value_or(from.id), last_uuid()};
  return found;
}

}  // namespace postrider::replay
