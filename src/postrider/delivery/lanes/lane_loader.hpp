// Loads what lanes need (their configuration, rows, bodies) from the database, for many lanes at once.
//
// Each of the three runs one statement at a time; requests of other lanes wait for the next one. While
// the database is unavailable they wait. Everything runs on the shard's connection, in order with its
// settles.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/lanes/lane.hpp"
#include "postrider/delivery/lanes/memory_budget.hpp"
#include "postrider/delivery/lanes/seen_deliveries.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

struct LoaderLimits {
  size_t lanes_per_fetch = 200;
  size_t configs_per_load = 500;
  size_t bodies_per_load = 500;
  size_t bodies_per_lane = 32;
  size_t bytes_per_load = 8 << 20;  // of bodies; one at least
};

// Receives what was loaded. Called on the loop.
class LoaderEvents : public LaneEvents {
 public:
  // Null: there is no such endpoint.
  virtual void configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config) = 0;
  // The event of this row is not in the database. The row has left its buffer.
  virtual void body_missing(const LanePtr& lane, QueueRow row) = 0;
};

struct LoaderTools {
  runtime::Loop& loop;
  pg::Link& link;
  http::Client& client;
  const crypto::MasterKeys& keys;
  const model::IdSource& clock;
  const Metrics& metrics;
  MemoryBudget& budget;
  SeenDeliveries& seen;
  registry::SecretResolver* secrets = nullptr;
};

class LaneLoader {
 public:
  LaneLoader(LoaderTools tools, LoaderLimits limits, LoaderEvents& events);

  void want_config(const LanePtr& lane);
  void want_rows(const LanePtr& lane);
  void want_bodies(const LanePtr& lane);

  // Returns when each lane has a configuration that was read after this call; at the latest at the deadline.
  runtime::Task<void> reload_configs(std::vector<LanePtr> lanes, base::SteadyTime deadline);

  void abandon();  // then stop the link
  runtime::Task<void> stop();

 private:
  struct Wanted {
    std::vector<LanePtr> lanes;
    bool is_running = false;
  };
  // A caller that waits for configurations. Lanes are only compared, because they may be gone.
  struct Reload {
    explicit Reload(runtime::Loop& loop) : done(loop) {}
    bool is_done() const { return wanted.empty() && begun.empty(); }
    std::unordered_set<const Lane*> wanted;  // not in a statement yet
    std::unordered_set<const Lane*> begun;   // in the statement that is running
    runtime::Wakeup done;
  };
  void begin_reloads(const std::vector<LanePtr>& lanes);
  void end_reloads(const std::vector<LanePtr>& lanes, bool is_loaded);
  // Takes up to `count` lanes out of the list, resetting their mark.
  std::vector<LanePtr> take(Wanted& wanted, bool Lane::LoaderMarks::* mark, size_t count);
  runtime::Task<void> run_configs();
  runtime::Task<void> run_rows();
  runtime::Task<void> run_bodies();
  // False: the database failed, and the lanes have asked again.
  runtime::Task<bool> load_configs(std::vector<LanePtr> lanes);
  runtime::Task<bool> load_rows(std::vector<LanePtr> lanes);
  runtime::Task<bool> load_bodies(std::vector<LanePtr> lanes);
  class WantedBodies;
  using Bodies = std::unordered_map<base::Uuid, std::shared_ptr<const model::EventContent>>;
  template <class Found>
  static bool take_bodies(const Found& found, WantedBodies& wanted, Bodies& bodies);
  runtime::Task<bool> load_kept_bodies(WantedBodies& wanted, Bodies& bodies);
  WantedBodies bodies_wanted_by(const std::vector<LanePtr>& lanes) const;
  template <class Load>
  runtime::Task<void> run(Wanted& wanted, Load load);

  Now now() const { return {base::BootClock::now(), tools_.clock.now()}; }
  void take_rows(const LanePtr& lane, Turn turn, std::vector<QueueRow> rows, bool is_last);
  // True: some body was put into a row of the lane.
  bool hand_out_bodies(const LanePtr& lane, const WantedBodies& wanted, const Bodies& bodies);

  LoaderTools tools_;
  LoaderLimits limits_;
  LoaderEvents& events_;
  Wanted configs_, rows_, bodies_;
  std::vector<Reload*> reloads_;  // of coroutines that wait
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
