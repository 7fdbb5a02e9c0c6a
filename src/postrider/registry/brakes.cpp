#include "postrider/registry/brakes.hpp"

#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/brakes.sql.hpp"

namespace postrider::registry {

namespace {

BrakeState read(const sql::BrakesRow& row) {
  BrakeState state;
  state.settings.is_paused = row.is_paused;
  state.settings.retry_rate_per_second = row.retry_rate_per_second;
  state.settings.drain_rate_per_second = row.drain_rate_per_second;
  state.reason = row.reason;
  state.changed_by = row.changed_by;
  state.changed_at = row.changed_at;
  return state;
}

Snapshot snapshot(const BrakeSettings& settings) {
  Snapshot fields;
  fields.add("pause_all", settings.is_paused)
      .add("retry_rate_per_second", settings.retry_rate_per_second)
      .add("drain_rate_per_second", settings.drain_rate_per_second);
  return fields;
}

}  // namespace

runtime::Task<BrakeState> load_brakes(pg::Link& link) {
  const auto rows = co_await link.run(sql::load_brakes{});
  co_return read(rows.front());
}

// In one transaction, so that the spans belong to the state.
runtime::Task<BrakeHistory> load_brake_history(pg::Link& link) {
  pg::Batch load;
  const auto state = load.add(sql::load_brakes{});
  const auto spans = load.add(sql::load_brake_spans{});
  pg::Results results = co_await link.run(std::move(load));
  BrakeHistory history;
  history.state = read(results.take(state).front());
  for (const auto& span : results.take(spans)) history.pauses.push_back({span.since, span.until});
  history.pauses = merged(std::move(history.pauses));
  co_return history;
}

runtime::Task<BrakeState> change_brakes(pg::Link& link, BrakeChange change) {
  pg::Transaction transaction = co_await link.begin();
  const auto locked = co_await transaction.run(sql::lock_brakes{});
  BrakeState state = read(locked.front());
  Snapshot before = snapshot(state.settings);
  change.apply(state.settings);
  pg::Batch save;
  const auto saved = save.add(sql::save_brakes{.is_paused = state.settings.is_paused,
                                               .retry_rate_per_second = state.settings.retry_rate_per_second,
                                               .drain_rate_per_second = state.settings.drain_rate_per_second,
                                               .reason = change.reason,
                                               .changed_by = change.caller.id});
  if (state.settings.is_paused)
    save.add(sql::begin_brake_span{});
  else
    save.add(sql::end_brake_span{});
  add_audit(save, change.caller,
            {.action = "brakes.update",
             .object = "brakes",
             .before = std::move(before),
             .after = snapshot(state.settings),
             .reason = change.reason});
  save.add(sql::note_brakes{});
  pg::Results results = co_await transaction.run(std::move(save));
  co_await transaction.commit();
  state.reason = change.reason;
  state.changed_by = change.caller.id;
  state.changed_at = results.take(saved).front().changed_at;
  co_return state;
}

}  // namespace postrider::registry
