#include "postrider/delivery/lane_loader.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/fetch.sql.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/registry/endpoint_config.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kDatabaseWait = 5s;   // then the lanes ask again; the loop must not hang on a stop
constexpr auto kRetryPause = 200ms;  // after a failure that was not an absence

void log_failure(const char* what, const pg::Error& error) {
  telemetry::log_warn("lane_load_failed").field("what", what).field("error", error.what());
}

}  // namespace

LaneLoader::LaneLoader(LoaderTools tools, LoaderLimits limits, LoaderEvents& events)
    : tools_(tools), limits_(limits), events_(events) {}

void LaneLoader::want_config(const LanePtr& lane) {
  if (std::exchange(lane->in_loader_.wants_config, true)) return;
  configs_.lanes.push_back(lane);
  if (!configs_.is_running && !is_stopping_) tasks_.spawn(run_configs());
}

void LaneLoader::want_rows(const LanePtr& lane) {
  if (std::exchange(lane->in_loader_.wants_rows, true)) return;
  rows_.lanes.push_back(lane);
  if (!rows_.is_running && !is_stopping_) tasks_.spawn(run_rows());
}

void LaneLoader::want_bodies(const LanePtr& lane) {
  if (std::exchange(lane->in_loader_.wants_bodies, true)) return;
  bodies_.lanes.push_back(lane);
  if (!bodies_.is_running && !is_stopping_) tasks_.spawn(run_bodies());
}

runtime::Task<void> LaneLoader::reload_configs(std::vector<LanePtr> lanes, base::SteadyTime deadline) {
  Reload reload(tools_.loop);
  for (const LanePtr& lane : lanes) {
    reload.wanted.insert(lane.get());
    want_config(lane);
  }
  reloads_.push_back(&reload);
  while (!reload.is_done() && !is_stopping_ && base::BootClock::now() < deadline)
    co_await reload.done.wait_until(deadline);
  std::erase(reloads_, &reload);
}

void LaneLoader::begin_reloads(const std::vector<LanePtr>& lanes) {
  for (Reload* reload : reloads_)
    for (const LanePtr& lane : lanes)
      if (reload->wanted.erase(lane.get()) > 0) reload->begun.insert(lane.get());
}

void LaneLoader::end_reloads(const std::vector<LanePtr>& lanes, bool is_loaded) {
  for (Reload* reload : reloads_) {
    for (const LanePtr& lane : lanes)
      if (reload->begun.erase(lane.get()) > 0 && !is_loaded) reload->wanted.insert(lane.get());
    if (reload->is_done()) reload->done.notify();
  }
}

void LaneLoader::abandon() {
  is_stopping_ = true;
  for (Reload* reload : reloads_) reload->done.notify();
}

std::vector<LanePtr> LaneLoader::take(Wanted& wanted, bool Lane::LoaderMarks::* mark, size_t count) {
  std::vector<LanePtr> lanes;
  count = std::min(count, wanted.lanes.size());
  lanes.assign(std::make_move_iterator(wanted.lanes.begin()),
               std::make_move_iterator(wanted.lanes.begin() + static_cast<ptrdiff_t>(count)));
  wanted.lanes.erase(wanted.lanes.begin(), wanted.lanes.begin() + static_cast<ptrdiff_t>(count));
  for (const LanePtr& lane : lanes) lane->in_loader_.*mark = false;
  std::erase_if(lanes, [](const LanePtr& lane) { return lane->is_gone(); });
  return lanes;
}

// Each of the three begins in a later turn of the loop, so that lanes which ask in this one share the
// statement.

template <class Load>
runtime::Task<void> LaneLoader::run(Wanted& wanted, Load load) {
  wanted.is_running = true;
  runtime::Yield turn{tools_.loop};
  co_await turn;
  runtime::Wakeup pause(tools_.loop);
  while (!is_stopping_ && !wanted.lanes.empty()) {
    auto loading = load();
    const bool is_loaded = co_await loading;
    if (!is_loaded && !is_stopping_) co_await pause.wait_for(kRetryPause);
  }
  wanted.is_running = false;
}

runtime::Task<void> LaneLoader::run_configs() {
  return run(configs_, [this] {
    return load_configs(take(configs_, &Lane::LoaderMarks::wants_config, limits_.configs_per_load));
  });
}

runtime::Task<void> LaneLoader::run_rows() {
  return run(rows_, [this] {
    return load_rows(take(rows_, &Lane::LoaderMarks::wants_rows, limits_.lanes_per_fetch));
  });
}

runtime::Task<void> LaneLoader::run_bodies() {
  return run(bodies_, [this] {
    return load_bodies(take(bodies_, &Lane::LoaderMarks::wants_bodies, limits_.lanes_per_fetch));
  });
}

runtime::Task<bool> LaneLoader::load_configs(std::vector<LanePtr> lanes) {
  std::vector<model::EndpointId> ids;
  for (const LanePtr& lane : lanes) ids.push_back(lane->endpoint);
  std::unordered_map<model::EndpointId, std::shared_ptr<const LaneConfig>> loaded;
  bool is_loaded = false;
  begin_reloads(lanes);
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await tools_.link.wait_up(deadline);
    tools_.metrics.database_round_trips.add();
    auto configs = co_await registry::load_endpoint_configs(tools_.link, ids, tools_.keys);
    for (auto& config : configs) {
      const auto id = config.id;
      loaded[id] = make_lane_config(std::move(config), tools_.secrets);
    }
    is_loaded = true;
  } catch (const pg::Error& error) {
    log_failure("configurations", error);
  }
  for (const LanePtr& lane : lanes) {
    if (lane->is_gone()) continue;
    if (is_loaded)
      events_.configured(lane, loaded[lane->endpoint]);
    else
      want_config(lane);
  }
  end_reloads(lanes, is_loaded);
  co_return is_loaded;
}

namespace {

// One buffer of one lane that takes part in a fetch.
struct Part {
  LanePtr lane;
  Turn turn;
  RowKey cursor;
  int wanted;
};

pg::Params fetch_params(const std::vector<Part>& parts) {
  pg::Params params;
  params.add(std::views::transform(parts, [](const Part& p) { return p.lane->bucket; }));
  params.add(std::views::transform(parts, [](const Part& p) { return p.lane->endpoint.uuid; }));
  params.add(std::views::transform(parts, [](const Part& p) { return p.turn == Turn::retry; }));
  params.add(std::views::transform(parts, [](const Part& p) { return p.cursor.position; }));
  params.add(std::views::transform(parts, [](const Part& p) {
    return p.cursor.due_at == base::Timestamp{} ? pg::minus_infinity : p.cursor.due_at;
  }));
  params.add(std::views::transform(parts, [](const Part& p) { return p.cursor.id.uuid; }));
  params.add(std::views::transform(parts, [](const Part& p) { return p.wanted; }));
  return params;
}

std::vector<std::vector<Row>> rows_by_part(const pg::Rows& found, size_t parts) {
  std::vector<std::vector<Row>> rows(parts);
  for (size_t i = 0; i < found.size(); ++i) {
    Row row;
    row.key = {found.get<int64_t>(i, 3), found.get<base::Timestamp>(i, 4), {found.get<base::Uuid>(i, 1)}};
    row.event_id = {found.get<base::Uuid>(i, 2)};
    row.attempts = std::max(0, found.get<int32_t>(i, 5));
    row.created_at = found.get<base::Timestamp>(i, 6);
    row.replay_id = found.get<std::optional<base::Uuid>>(i, 7);
    rows[static_cast<size_t>(found.get<int64_t>(i, 0) - 1)].push_back(std::move(row));
  }
  return rows;
}

}  // namespace

runtime::Task<bool> LaneLoader::load_rows(std::vector<LanePtr> lanes) {
  std::vector<Part> parts;
  for (const LanePtr& lane : lanes) {
    for (const Turn turn : kBothTurns) {
      RowBuffer& buffer = lane->buffer(turn);
      const size_t wanted = tools_.budget.make_room(buffer);
      if (!buffer.may_have_more() || buffer.is_fetching() || wanted == 0) continue;
      parts.push_back({lane, turn, buffer.begin_fetch(), static_cast<int>(wanted)});
    }
  }
  if (parts.empty()) co_return true;
  bool is_fetched = false;
  pg::Rows found;
  try {
    base::reach("fetch.before");
    tools_.metrics.database_round_trips.add();
    pg::Batch fetch(sql::rows_of_lanes, fetch_params(parts));
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    auto answers = co_await tools_.link.run(std::move(fetch), deadline);
    found = std::move(answers.front());
    tools_.metrics.batch_size.at("fetch").observe(static_cast<double>(found.size()));
    base::reach("fetch.after");
    is_fetched = true;
  } catch (const pg::Error& error) {
    log_failure("rows", error);
  }
  auto rows = rows_by_part(found, parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    const bool is_last = rows[i].size() < static_cast<size_t>(part.wanted);
    if (is_fetched) {
      take_rows(part.lane, part.turn, std::move(rows[i]), is_last);
    } else {
      part.lane->buffer(part.turn).fetch_failed();
      events_.changed(part.lane);
    }
  }
  co_return is_fetched;
}

void LaneLoader::take_rows(const LanePtr& lane, Turn turn, std::vector<Row> rows, bool is_last) {
  if (lane->is_gone()) return;
  const Now at = now();
  for (const Row& row : rows) tools_.seen.fetched(row, at);
  lane->buffer(turn).fetched(std::move(rows), is_last, [&lane, this](model::DeliveryId id) {
    return lane->is_known(id) || tools_.seen.was_canceled(id);
  });
  events_.changed(lane);
}

// Ids in the order in which they were asked for: what does not fit into one answer is what came last.
class LaneLoader::WantedBodies {
 public:
  explicit WantedBodies(size_t most) : most_(most) {}

  void add(base::Uuid id) {
    if (!is_full() && known_.insert(id).second) ids_.push_back(id);
  }
  void put_off(base::Uuid id) { known_.erase(id); }
  bool is_full() const { return ids_.size() == most_; }
  bool contains(base::Uuid id) const { return known_.contains(id); }
  const std::vector<base::Uuid>& ids() const { return ids_; }

 private:
  size_t most_;
  std::vector<base::Uuid> ids_;
  std::unordered_set<base::Uuid> known_;
};

// The row that is sent next, which need not be the first one, and the others if there is room. An open
// breaker lets only one out. Rows that rest are left alone: their bodies would be given back at once, after
// they have taken the place of those that are waited for.
// Every lane's next one comes first: a lane with many does not make others wait for theirs.
LaneLoader::WantedBodies LaneLoader::bodies_wanted_by(const std::vector<LanePtr>& lanes) const {
  WantedBodies wanted(limits_.bodies_per_load);
  std::vector<const RowBuffer*> further;
  const Now at = now();
  for (const LanePtr& lane : lanes) {
    for (const Turn turn : kBothTurns) {
      if (lane->readiness(turn, at).wait != Lane::Wait::body) continue;
      wanted.add(lane->next(turn, at).event_id.uuid);
      const RowBuffer& buffer = lane->buffer(turn);
      if (!lane->breaker().is_open() && tools_.budget.has_room_for_bodies(buffer)) further.push_back(&buffer);
    }
  }
  for (const RowBuffer* buffer : further) {
    size_t left = limits_.bodies_per_lane;
    for (const Row& row : buffer->rows()) {
      if (left == 0 || wanted.is_full()) break;
      if (row.event) continue;
      wanted.add(row.event_id.uuid);
      --left;
    }
  }
  return wanted;
}

// Bodies that are too much for one answer are asked for the next time.
void LaneLoader::take_bodies(const pg::Rows& found, WantedBodies& wanted, Bodies& bodies) {
  for (size_t i = 0; i < found.size(); ++i) {
    auto body = found.get<std::optional<std::string>>(i, 2);
    if (!body) {
      wanted.put_off(found.get<base::Uuid>(i, 0));
      continue;
    }
    auto content = std::make_shared<model::EventContent>();
    content->id = {found.get<base::Uuid>(i, 0)};
    content->public_id = found.get<std::optional<std::string>>(i, 1).value_or(content->id.public_id());
    content->body = std::move(*body);
    content->traceparent = found.get<std::optional<std::string>>(i, 3).value_or("");
    bodies[content->id.uuid] = std::move(content);
  }
}

// Events that are not in the table of their day may have outlived it. True: some of them may still be on
// their way, because retention is just taking the day away; they are put off.
runtime::Task<bool> LaneLoader::load_kept_bodies(WantedBodies& wanted, Bodies& bodies) {
  std::vector<base::Uuid> missing;
  for (const base::Uuid& id : wanted.ids())
    if (wanted.contains(id) && !bodies.contains(id)) missing.push_back(id);
  if (missing.empty()) co_return false;
  tools_.metrics.database_round_trips.add();
  pg::Batch load;
  load.with(sql::kept_bodies, missing, static_cast<int64_t>(limits_.bytes_per_load));
  const auto deadline = base::BootClock::now() + kDatabaseWait;
  const auto answers = co_await tools_.link.run(std::move(load), deadline);
  const pg::Rows& found = answers.front();
  take_bodies(found, wanted, bodies);
  bool is_waiting = false;
  for (size_t i = 0; i < found.size(); ++i) is_waiting |= found.get<bool>(i, 4);
  co_return is_waiting;
}

runtime::Task<bool> LaneLoader::load_bodies(std::vector<LanePtr> lanes) {
  WantedBodies wanted = bodies_wanted_by(lanes);
  Bodies bodies;
  bool is_loaded = false, is_waiting = false;
  if (wanted.ids().empty()) co_return true;
  try {
    tools_.metrics.database_round_trips.add();
    pg::Batch load;
    const auto [first, last] = std::ranges::minmax(wanted.ids());
    load.with(sql::bodies, wanted.ids(), first, last, static_cast<int64_t>(limits_.bytes_per_load));
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    const auto answers = co_await tools_.link.run(std::move(load), deadline);
    take_bodies(answers.front(), wanted, bodies);
    auto falling_back = load_kept_bodies(wanted, bodies);
    is_waiting = co_await falling_back;
    is_loaded = true;
  } catch (const pg::Error& error) {
    log_failure("bodies", error);
  }
  std::vector<LanePtr> served;  // these ask again after those that got none
  for (const LanePtr& lane : lanes) {
    if (lane->is_gone()) continue;
    const bool is_served = is_loaded && hand_out_bodies(lane, wanted, bodies);
    if (is_served)
      served.push_back(lane);
    else
      events_.changed(lane);
  }
  for (const LanePtr& lane : served) events_.changed(lane);
  co_return is_loaded && !is_waiting;
}

bool LaneLoader::hand_out_bodies(const LanePtr& lane, const WantedBodies& wanted, const Bodies& bodies) {
  bool is_served = false;
  for (const Turn turn : kBothTurns) {
    RowBuffer& buffer = lane->buffer(turn);
    for (size_t i = 0; i < buffer.size();) {
      const Row& row = buffer.rows()[i];
      const auto body = bodies.find(row.event_id.uuid);
      if (!row.event && body != bodies.end()) {
        buffer.set_body(i, body->second);
        is_served = true;
      } else if (!row.event && wanted.contains(row.event_id.uuid)) {
        events_.body_missing(lane, buffer.take(i));
        continue;
      }
      ++i;
    }
  }
  return is_served;
}

runtime::Task<void> LaneLoader::stop() {
  is_stopping_ = true;
  co_await tasks_.join();
}

}  // namespace postrider::delivery
