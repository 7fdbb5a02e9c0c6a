// Finds work in the queue table: the lanes of a bucket that was taken, and rows that other nodes published.
//
// Every committed row is announced. If an announcement is lost, the row is late but not lost: a patrol reads
// one bucket after the other.
#pragma once

#include <vector>

#include "postrider/delivery/lanes/lane_table.hpp"
#include "postrider/delivery/lanes/memory_budget.hpp"
#include "postrider/delivery/lanes/seen_deliveries.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

// A range of ids in which rows were committed.
struct FoundRows {
  std::vector<int> buckets;
  model::DeliveryId first, last;
};

struct BucketReaderTools {
  runtime::Loop& loop;
  pg::Link& link;
  const model::IdSource& clock;
  LaneTable& lanes;
  MemoryBudget& budget;
  SeenDeliveries& seen;
};

// How many of its buckets a shard patrols at a time, so that a round over all of them takes as long with many
// buckets as with a few.
size_t patrolled_at_once(size_t owned_buckets);

class BucketReader {
 public:
  struct Options {
    size_t found_rows_max = 200;  // read at a time, of each bucket
    std::chrono::milliseconds patrol_interval{10'000};
  };
  BucketReader(BucketReaderTools tools, Options options, LaneEvents& events);

  // The bucket was taken: finds its lanes, which then read their rows from the start.
  void read(int bucket);
  // Announcements may have been missed: scans all buckets again.
  void read_all();
  // Another node committed rows.
  void read(FoundRows found);
  // This node committed these rows; they come with their bodies.
  void offer(std::vector<model::CommittedDelivery> deliveries);

  void abandon() { is_stopping_ = true; }
  runtime::Task<void> stop();

 private:
  enum class Scan {
    everything,  // the bucket was taken, or announcements may have been missed
    idle_lanes,  // a patrol, in case one announcement was missed
  };
  Now now() const { return {base::BootClock::now(), tools_.clock.now()}; }
  void patrol();
  runtime::Task<void> scan(int bucket, int64_t epoch, Scan what);
  bool is_scan_current(int bucket, int64_t epoch) const;
  void take_lane(model::EndpointId endpoint, int bucket, Scan what);
  runtime::Task<void> fetch_found(FoundRows found);
  template <class Rows>
  void take_found(const Rows& rows);
  void offer_row(const LanePtr& lane, QueueRow row, bool is_retry);

  BucketReaderTools tools_;
  Options options_;
  LaneEvents& events_;
  int patrolled_ = -1;  // the last bucket
  bool is_stopping_ = false;
  runtime::Timer patrol_timer_;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
