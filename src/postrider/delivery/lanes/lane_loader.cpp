#include "postrider/delivery/lanes/lane_loader.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/fail_point.hpp"
#include "postrider/delivery/lanes/fetch.sql.hpp"
#include "postrider/delivery/lanes/read_row.hpp"
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
      auto profile = registry::profile_of(tools_.client, config);
      loaded[id] = make_lane_config(std::move(config), tools_.secrets, std::move(profile));
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

template <class Get>
auto column(const std::vector<Part>& parts, Get get) {
  return std::views::transform(parts, get);
}

pg::Pending<sql::rows_of_lanes> add_fetch(pg::Batch& batch, const std::vector<Part>& parts) {
  return batch.add(sql::rows_of_lanes{
      .buckets = column(parts, [](const Part& p) { return p.lane->bucket; }),
      .endpoints = column(parts, [](const Part& p) { return p.lane->endpoint.uuid; }),
      .are_retries = column(parts, [](const Part& p) { return p.turn == Turn::retry; }),
      .positions = column(parts, [](const Part& p) { return p.cursor.position; }),
      .due_at = column(parts,
                       [](const Part& p) {
                         return p.cursor.due_at == base::Timestamp{} ? pg::minus_infinity : p.cursor.due_at;
                       }),
      .ids = column(parts, [](const Part& p) { return p.cursor.id.uuid; }),
      .rows_max = column(parts, [](const Part& p) { return p.wanted; })});
}

std::vector<std::vector<QueueRow>> rows_by_part(const pg::RowsOf<sql::rows_of_lanes>& found, size_t parts) {
  std::vector<std::vector<QueueRow>> rows(parts);
  for (const auto& row : found) rows[static_cast<size_t>(row.part - 1)].push_back(read_row(row));
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
  pg::RowsOf<sql::rows_of_lanes> found;
  try {
    base::reach("fetch.before");
    tools_.metrics.database_round_trips.add();
    pg::Batch fetch;
    const auto pending = add_fetch(fetch, parts);
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await tools_.link.run(std::move(fetch), deadline);
    found = results.take(pending);
    tools_.metrics.fetch_batch_items.observe(static_cast<double>(found.size()));
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

void LaneLoader::take_rows(const LanePtr& lane, Turn turn, std::vector<QueueRow> rows, bool is_last) {
  if (lane->is_gone()) return;
  const Now at = now();
  for (const QueueRow& row : rows) tools_.seen.fetched(row, at);
  lane->buffer(turn).fetched(std::move(rows), is_last, [&lane, this](model::DeliveryId id) {
    return lane->is_known(id) || tools_.seen.was_canceled(id);
  });
  events_.changed(lane);
}

// IDs in order of urgency: if not all bodies fit into one result, the last ones are missing.
class LaneLoader::WantedBodies {
 public:
  explicit WantedBodies(size_t most) : most_(most) {}

  void add(base::Uuid id) {
    if (!is_full() && known_.insert(id).second) ids_.push_back(id);
  }
  void postpone(base::Uuid id) { known_.erase(id); }
  bool is_full() const { return ids_.size() == most_; }
  bool contains(base::Uuid id) const { return known_.contains(id); }
  const std::vector<base::Uuid>& ids() const { return ids_; }

 private:
  size_t most_;
  std::vector<base::Uuid> ids_;
  std::unordered_set<base::Uuid> known_;
};

// Invariant: the body that each lane needs for its next send is in the list before any other body. So no lane
// waits for the backlog of another, and each load lets every lane that it serves send at least once.
LaneLoader::WantedBodies LaneLoader::bodies_wanted_by(const std::vector<LanePtr>& lanes) const {
  WantedBodies wanted(limits_.bodies_per_load);
  std::vector<const RowBuffer*> further;
  const Now at = now();
  for (const LanePtr& lane : lanes) {
    for (const Turn turn : kBothTurns) {
      // The lane asked some time ago. It may have to wait for something else now (a hold, a breaker that
      // opened): then it releases its bodies, and loading them would only displace bodies that are needed.
      if (lane->readiness(turn, at).wait != Lane::Wait::body) continue;
      // next() must be the same choice as in Lane::start(), which is not always the first row. Otherwise the
      // loaded row and the row to send differ, and the lane loads forever without sending.
      wanted.add(lane->next(turn, at).event_id.uuid);
      const RowBuffer& buffer = lane->buffer(turn);
      // An open breaker sends one probe at a time, so further bodies would only take space.
      if (!lane->breaker().is_open() && tools_.budget.has_room_for_bodies(buffer)) further.push_back(&buffer);
    }
  }
  for (const RowBuffer* buffer : further) {
    size_t left = limits_.bodies_per_lane;
    for (const QueueRow& row : buffer->rows()) {
      if (left == 0 || wanted.is_full()) break;
      if (row.event) continue;
      wanted.add(row.event_id.uuid);
      --left;
    }
  }
  return wanted;
}

// Bodies that did not fit into this result are loaded next time. Returns whether a day is being detached:
// some of its events may be about to be kept, so they are loaded next time, too.
template <class Found>
bool LaneLoader::take_bodies(const Found& found, WantedBodies& wanted, Bodies& bodies) {
  bool is_retiring = false;
  for (const auto& row : found) {
    is_retiring |= row.is_retiring.value_or(false);
    if (!row.body) {
      wanted.postpone(row.id);
      continue;
    }
    auto content = std::make_shared<model::EventContent>();
    content->id = {row.id};
    content->public_id = row.public_id ? std::string(*row.public_id) : content->id.public_id();
    content->body = *row.body;
    content->traceparent = row.traceparent.value_or("");
    bodies[row.id] = std::move(content);
  }
  return is_retiring;
}

// Events that are not in the table of their day may have outlived it. Returns as take_bodies().
runtime::Task<bool> LaneLoader::load_kept_bodies(WantedBodies& wanted, Bodies& bodies) {
  std::vector<base::Uuid> missing;
  for (const base::Uuid& id : wanted.ids())
    if (wanted.contains(id) && !bodies.contains(id)) missing.push_back(id);
  if (missing.empty()) co_return false;
  tools_.metrics.database_round_trips.add();
  pg::Batch load;
  const auto pending =
      load.add(sql::kept_bodies{.bytes_max = static_cast<int64_t>(limits_.bytes_per_load), .ids = missing});
  const auto deadline = base::BootClock::now() + kDatabaseWait;
  pg::Results results = co_await tools_.link.run(std::move(load), deadline);
  co_return take_bodies(results.take(pending), wanted, bodies);
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
    const auto pending = load.add(sql::bodies{.bytes_max = static_cast<int64_t>(limits_.bytes_per_load),
                                              .ids = wanted.ids(),
                                              .first = first,
                                              .last = last});
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    pg::Results results = co_await tools_.link.run(std::move(load), deadline);
    take_bodies(results.take(pending), wanted, bodies);
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
      const QueueRow& row = buffer.rows()[i];
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
