#include "postrider/replay/candidates.hpp"

#include <algorithm>

#include "postrider/replay/candidates.sql.hpp"

namespace postrider::replay {

namespace {

std::optional<base::Uuid> uuid_of(const std::optional<model::EndpointId>& endpoint) {
  if (!endpoint) return std::nullopt;
  return endpoint->uuid;
}

Found read_found(const pg::RowList<sql::CandidateRow>& rows, const Cursor& from, const Look& look) {
  Found found;
  for (const auto& row : rows) {
    if (!row.event_id) continue;
    found.candidates.push_back({*row.event_id, *row.endpoint_id, row.origin_id});
    // Several endpoints may match one event, but a dead letter matches once.
    found.next = {*row.cursor_id, row.origin_id ? base::Uuid{} : *row.endpoint_id};
  }
  const bool is_full = found.candidates.size() == static_cast<size_t>(look.candidates_max);
  if (is_full) return found;
  const auto first = rows.front();
  found.is_last = first.scanned < look.rows_max;
  found.next = {first.last_id.value_or(from.id), last_uuid()};
  return found;
}

// `Runner` is a pg::Link or a pg::Transaction.
template <class Runner>
runtime::Task<Found> search(Runner& runner, const Range& range, Cursor from, Look look) {
  const base::Uuid before = model::id_floor(range.until);
  const std::optional<base::Uuid> endpoint = uuid_of(range.endpoint);
  pg::RowList<sql::CandidateRow> rows;
  if (range.scope == Scope::failed)
    rows = co_await runner.run(sql::failed_candidates{.tenant = range.tenant,
                                                      .endpoint = endpoint,
                                                      .deliveries = range.deliveries,
                                                      .after = from.id,
                                                      .before = before,
                                                      .scanned_max = look.rows_max,
                                                      .event_types = range.event_types,
                                                      .causes = range.causes,
                                                      .matches_max = look.candidates_max});
  else
    rows = co_await runner.run(sql::event_candidates{.tenant = range.tenant,
                                                     .first = from.id,
                                                     .before = before,
                                                     .scanned_max = look.rows_max,
                                                     .endpoint = endpoint,
                                                     .after_endpoint = from.endpoint,
                                                     .missing_only = range.scope == Scope::missing,
                                                     .matches_max = look.candidates_max,
                                                     .event_types = range.event_types});
  co_return read_found(rows, from, look);
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

runtime::Task<Found> find_candidates(pg::Link& link, const Range& range, Cursor from, Look look) {
  return search(link, range, from, look);
}

runtime::Task<Found> find_candidates(pg::Transaction& transaction, const Range& range, Cursor from,
                                     Look look) {
  return search(transaction, range, from, look);
}

}  // namespace postrider::replay
