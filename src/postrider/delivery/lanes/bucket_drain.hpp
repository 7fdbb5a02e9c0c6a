// Empties a bucket before it is released to another node.
//
// Releasing a bucket while an attempt is open would let the next owner send the same delivery at the same
// time. So there is no deadline: the endpoints' own time-outs end it. But an endpoint that takes minutes must
// not silence all others of its bucket: they continue while it is waited for, and then the bucket is tried
// again.
#pragma once

#include <list>
#include <vector>

#include "postrider/delivery/lanes/lane_table.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

class BucketDrain {
 public:
  BucketDrain(runtime::Loop& loop, LaneTable& lanes, LaneEvents& events)
      : loop_(loop), lanes_(lanes), events_(events) {}

  // Sends nothing new for the bucket and returns when nothing of it is outstanding. An endpoint that takes
  // longer than `patience` is waited for alone. False: the bucket must not be released, because it was lost
  // or the shard is stopping.
  runtime::Task<bool> drain(int bucket, std::chrono::milliseconds patience);

  // A lane of the bucket has nothing outstanding any more, or the bucket was lost.
  void look(int bucket);
  void look_at_all();
  void stop();

 private:
  struct Waiter {
    Waiter(int of, runtime::Loop& loop) : bucket(of), wakeup(loop) {}
    int bucket;
    bool is_due = false;
    runtime::Wakeup wakeup;
  };

  void halt(int bucket);
  void resume_idle(int bucket);
  std::vector<LanePtr> busy_lanes(int bucket) const;
  runtime::Task<bool> until_idle(int bucket, int64_t epoch, base::SteadyTime deadline);
  void wake_due();

  runtime::Loop& loop_;
  LaneTable& lanes_;
  LaneEvents& events_;
  std::list<Waiter> waiters_;
  bool is_waking_ = false;
  bool is_stopping_ = false;
};

}  // namespace postrider::delivery
