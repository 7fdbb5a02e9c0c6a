#include "postrider/delivery/lanes/bucket_drain.hpp"

#include <algorithm>

namespace postrider::delivery {

namespace {

constexpr auto kLongWait = std::chrono::hours(1);
constexpr int kRounds = 3;  // the last one waits for every endpoint without a limit

}  // namespace

runtime::Task<bool> BucketDrain::drain(int bucket, std::chrono::milliseconds patience) {
  const LaneTable::Bucket* const found = lanes_.find_bucket(bucket);
  if (found == nullptr) co_return false;
  const int64_t epoch = found->epoch;
  for (int round = 1; !is_stopping_ && lanes_.has_bucket(bucket, epoch); ++round) {
    halt(bucket);
    const auto deadline = round == kRounds ? base::SteadyTime::max() : base::BootClock::now() + patience;
    const bool is_idle = co_await until_idle(bucket, epoch, deadline);
    if (is_idle) co_return true;
    if (is_stopping_ || !lanes_.has_bucket(bucket, epoch)) break;
    resume_idle(bucket);
    const auto no_deadline = base::SteadyTime::max();
    co_await until_idle(bucket, epoch, no_deadline);
  }
  co_return false;
}

void BucketDrain::halt(int bucket) {
  lanes_.find_bucket(bucket)->is_draining = true;
  for (const LanePtr& lane : lanes_.lanes_of(bucket)) lane->set_draining(true);
}

void BucketDrain::resume_idle(int bucket) {
  lanes_.find_bucket(bucket)->is_draining = false;
  for (const LanePtr& lane : lanes_.lanes_of(bucket)) {
    if (lane->has_outstanding()) continue;
    lane->set_draining(false);
    events_.changed(lane);
  }
}

std::vector<LanePtr> BucketDrain::busy_lanes(int bucket) const {
  std::vector<LanePtr> busy = lanes_.lanes_of(bucket);
  std::erase_if(busy, [](const LanePtr& lane) { return !lane->is_draining() || !lane->has_outstanding(); });
  return busy;
}

// True: nothing of the halted lanes is outstanding. False: the deadline, a stop, or the bucket was lost.
runtime::Task<bool> BucketDrain::until_idle(int bucket, int64_t epoch, base::SteadyTime deadline) {
  const auto waiter = waiters_.emplace(waiters_.end(), bucket, loop_);
  std::vector<LanePtr> busy = busy_lanes(bucket);
  while (!busy.empty() && !is_stopping_ && lanes_.has_bucket(bucket, epoch) &&
         base::BootClock::now() < deadline) {
    const auto until = std::min(deadline, base::BootClock::now() + kLongWait);
    co_await waiter->wakeup.wait_until(until);
    std::erase_if(busy, [](const LanePtr& lane) { return !lane->has_outstanding(); });
    // Even a halted lane dead-letters a row without a body, so another one may have become busy.
    if (busy.empty()) busy = busy_lanes(bucket);
  }
  waiters_.erase(waiter);
  co_return busy.empty() && lanes_.has_bucket(bucket, epoch);
}

void BucketDrain::look(int bucket) {
  for (Waiter& waiter : waiters_) waiter.is_due |= waiter.bucket == bucket;
  wake_due();
}

void BucketDrain::look_at_all() {
  for (Waiter& waiter : waiters_) waiter.is_due = true;
  wake_due();
}

// A drain that is woken continues at once. It may remove itself from the list and cause another check, so the
// list is searched again after each.
void BucketDrain::wake_due() {
  if (is_waking_) return;
  is_waking_ = true;
  const auto is_due = [](const Waiter& waiter) { return waiter.is_due; };
  for (auto next = std::ranges::find_if(waiters_, is_due); next != waiters_.end();
       next = std::ranges::find_if(waiters_, is_due)) {
    next->is_due = false;
    next->wakeup.notify();
  }
  is_waking_ = false;
}

void BucketDrain::stop() {
  is_stopping_ = true;
  look_at_all();
}

}  // namespace postrider::delivery
