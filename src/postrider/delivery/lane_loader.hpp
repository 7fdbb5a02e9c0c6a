// Loads what lanes lack (their configuration, rows, bodies) from the database, for many lanes at once.
//
// For each of the three one statement is under way at a time; lanes that ask meanwhile go into the next one.
// While the database is away they wait. Everything runs on the shard's connection, in order with its settles.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/delivery/lane.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::delivery {

using LanePtr = std::shared_ptr<Lane>;  // shared: a lane may be dropped while its attempts are under way

struct LoaderLimits {
  size_t lanes_per_fetch = 200;
  size_t configs_per_load = 500;
  size_t bodies_per_load = 500;
  size_t bodies_per_lane = 32;
  size_t bytes_per_load = 8 << 20;  // of bodies; one at least
};

// What the shard does with what was loaded. Called on the loop.
struct LoaderEvents {
  std::function<void(const LanePtr&, std::shared_ptr<const LaneConfig>)>
      configured;                                             // null: no such endpoint
  std::function<size_t(RowBuffer&)> rows_wanted;              // how many more rows it may hold
  std::function<bool(const RowBuffer&)> has_room_for_bodies;  // else it gets one at a time
  // The row whose body that turn waits for; null: it does not.
  std::function<const Row*(Lane&, Turn)> waits_for_body;
  std::function<void(const LanePtr&, Turn, std::vector<Row>, bool is_last)> fetched;
  std::function<void(const LanePtr&)> fetch_failed;
  std::function<void(const LanePtr&)> bodies_loaded;
  std::function<void(const LanePtr&, Row)> body_missing;
};

class LaneLoader {
 public:
  LaneLoader(runtime::Loop& loop, pg::Link& link, const crypto::MasterKeys& keys, telemetry::Metrics& metrics,
             LoaderLimits limits, LoaderEvents events, registry::SecretResolver* secrets = nullptr);

  void want_config(const LanePtr& lane);
  void want_rows(const LanePtr& lane);
  void want_bodies(const LanePtr& lane);

  void abandon() { is_stopping_ = true; }  // then stop the link
  runtime::Task<void> stop();

 private:
  struct Wanted {
    std::vector<LanePtr> lanes;
    bool is_running = false;
  };
  // Takes up to `count` lanes out of the list, resetting their mark.
  std::vector<LanePtr> take(Wanted& wanted, bool Lane::* mark, size_t count);
  runtime::Task<void> run_configs();
  runtime::Task<void> run_rows();
  runtime::Task<void> run_bodies();
  // False: the database failed, and the lanes have asked again.
  runtime::Task<bool> load_configs(std::vector<LanePtr> lanes);
  runtime::Task<bool> load_rows(std::vector<LanePtr> lanes);
  runtime::Task<bool> load_bodies(std::vector<LanePtr> lanes);
  class WantedBodies;
  WantedBodies bodies_wanted_by(const std::vector<LanePtr>& lanes) const;
  template <class Load>
  runtime::Task<void> run(Wanted& wanted, Load load);

  runtime::Loop& loop_;
  pg::Link& link_;
  const crypto::MasterKeys& keys_;
  telemetry::Metrics& metrics_;
  LoaderLimits limits_;
  LoaderEvents events_;
  registry::SecretResolver* secrets_;
  Wanted configs_, rows_, bodies_;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
