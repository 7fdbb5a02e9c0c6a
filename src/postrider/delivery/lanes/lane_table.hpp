// The buckets that a shard serves and the lanes in them, with the time at which each lane is due for its
// next check.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/lanes/choose.hpp"
#include "postrider/delivery/lanes/lane.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::delivery {

class LaneTable {
 public:
  struct Bucket {
    int64_t epoch;
    bool is_scanning = false;  // its lanes are still being found
    bool is_draining = false;  // nothing new is sent
  };
  struct Options {
    int buckets_total = 64;  // of the schema
    BreakerPolicy breaker;
  };
  LaneTable(runtime::Loop& loop, const Metrics& metrics, Options options, BufferTotals& totals,
            Chooser& chooser, LaneEvents& events);

  // ── buckets ──
  void add_bucket(int bucket, int64_t epoch);
  void remove_bucket(int bucket);  // and its lanes
  void remove_all_buckets();
  Bucket* find_bucket(int bucket);
  bool has_bucket(int bucket) const { return buckets_.contains(bucket); }
  bool has_bucket(int bucket, int64_t epoch) const;
  std::map<int, Bucket>& buckets() { return buckets_; }

  // ── lanes ──
  using Lanes = std::unordered_map<model::EndpointId, LanePtr>;
  const Lanes& lanes() const { return lanes_; }
  std::vector<LanePtr> lanes_of(int bucket) const;
  LanePtr find(model::EndpointId endpoint) const;  // null: not here
  // The bucket must be one of the shard's. A lane of a bucket that is being scanned expects rows in the
  // table.
  LanePtr get_or_create(model::EndpointId endpoint, int bucket);
  void forget(const LanePtr& lane);
  // Lanes that have had no work for a minute.
  std::vector<LanePtr> idle_lanes(base::SteadyTime now) const;
  void note_work(Lane& lane, base::SteadyTime now);

  // ── timers ──
  // Reports the lane as changed at that time, or earlier if an earlier time was asked for.
  void wake_at(const LanePtr& lane, base::SteadyTime when);
  size_t timers() const { return wakes_.size(); }
  void stop() { timer_.cancel(); }

 private:
  void share_changed();
  void cancel_wake(Lane& lane);
  void set_timer();
  void run_timers();

  const Metrics& metrics_;
  Options options_;
  BufferTotals& totals_;
  Chooser& chooser_;
  LaneEvents& events_;
  std::map<int, Bucket> buckets_;
  Lanes lanes_;
  std::set<std::pair<base::SteadyTime, Lane*>> wakes_;  // at most one of each lane: its wake_at
  runtime::Timer timer_;
};

}  // namespace postrider::delivery
