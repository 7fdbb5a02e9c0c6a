#include "postrider/registry/brakes.hpp"

#include <utility>

#include "postrider/registry/audit.hpp"
#include "postrider/registry/brakes.sql.hpp"

namespace postrider::registry {

namespace {

BrakeState read(const pg::Rows& rows) {
  BrakeState state;
  state.settings.is_paused = rows.get<bool>(0, 0);
  state.settings.retry_rate_per_second = rows.get<std::optional<double>>(0, 1);
  state.settings.drain_rate_per_second = rows.get<std::optional<double>>(0, 2);
  state.reason = rows.get<std::optional<std::string>>(0, 3);
  state.changed_by = rows.get<std::optional<std::string>>(0, 4);
  state.changed_at = rows.get<std::optional<base::Timestamp>>(0, 5);
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
  const pg::Rows rows = co_await link.run_one(sql::load_brakes);
  co_return read(rows);
}

runtime::Task<BrakeState> change_brakes(pg::Link& link, BrakeChange change) {
  pg::Transaction transaction = co_await link.begin();
  pg::Batch lock(sql::lock_brakes, pg::Params());
  const std::vector<pg::Rows> locked = co_await transaction.run(std::move(lock));
  BrakeState state = read(locked.front());
  Snapshot before = snapshot(state.settings);
  change.apply(state.settings);
  pg::Params params(state.settings.is_paused, state.settings.retry_rate_per_second,
                    state.settings.drain_rate_per_second, change.reason, change.caller.id);
  pg::Batch save(sql::save_brakes, std::move(params));
  add_audit(save, change.caller,
            {.action = "brakes.change",
             .object = "brakes",
             .before = std::move(before),
             .after = snapshot(state.settings),
             .reason = change.reason});
  save.with(sql::note_brakes);
  const std::vector<pg::Rows> saved = co_await transaction.run(std::move(save));
  co_await transaction.commit();
  state.reason = change.reason;
  state.changed_by = change.caller.id;
  state.changed_at = saved.front().get<base::Timestamp>(0, 0);
  co_return state;
}

}  // namespace postrider::registry
