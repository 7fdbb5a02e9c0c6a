// How a bucket is handed over, and how a shard ends.
#include <algorithm>
#include <utility>

#include "postrider/delivery/shard.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 2ms, kLookMax = 64ms;  // doubled from one to the other
constexpr int kRounds = 3;                    // the last one waits for everybody, however long it takes

}  // namespace

// To give a bucket away while an attempt is open would be to send that delivery twice at once, so there is no
// deadline; the endpoints' own time-outs end it. But one that takes minutes must not silence all the others
// of its bucket for so long: they go on while it is waited for, and then the whole bucket is tried again.
runtime::Task<bool> Shard::drain_bucket(int bucket, std::chrono::milliseconds patience) {
  const auto found = buckets_.find(bucket);
  if (found == buckets_.end()) co_return false;
  const int64_t epoch = found->second.epoch;
  for (int round = 1; !is_stopping_ && has_bucket(bucket, epoch); ++round) {
    halt(bucket);
    const bool is_last = round == kRounds;
    const auto deadline = is_last ? base::SteadyTime::max() : base::BootClock::now() + patience;
    const bool is_idle = co_await until_idle(bucket, deadline);
    if (is_idle) co_return true;
    if (!has_bucket(bucket, epoch)) break;
    resume_idle(bucket);
    co_await until_idle(bucket, base::SteadyTime::max());
  }
  co_return false;
}

bool Shard::has_bucket(int bucket, int64_t epoch) const {
  const auto found = buckets_.find(bucket);
  return found != buckets_.end() && found->second.epoch == epoch;
}

void Shard::halt(int bucket) {
  buckets_.at(bucket).is_draining = true;
  for (const auto& [id, lane] : lanes_)
    if (lane->bucket == bucket) lane->is_draining = true;
}

void Shard::resume_idle(int bucket) {
  buckets_.at(bucket).is_draining = false;
  std::vector<LanePtr> idle;
  for (const auto& [id, lane] : lanes_)
    if (lane->bucket == bucket && lane->away.empty()) idle.push_back(lane);
  for (const LanePtr& lane : idle) {
    lane->is_draining = false;
    touch(lane);
  }
}

std::vector<LanePtr> Shard::halted_and_busy(int bucket) const {
  std::vector<LanePtr> busy;
  for (const auto& [id, lane] : lanes_)
    if (lane->bucket == bucket && lane->is_draining && !lane->away.empty()) busy.push_back(lane);
  return busy;
}

// Until nothing of the halted lanes is under way. False: it was the deadline, a stop, or the bucket was lost.
runtime::Task<bool> Shard::until_idle(int bucket, base::SteadyTime deadline) {
  runtime::Wakeup wakeup(tools_.loop);
  auto pause = kLook;
  // A row without its body is given up even by a halted lane, so one look at all lanes may not be enough.
  for (auto busy = halted_and_busy(bucket); !busy.empty(); busy = halted_and_busy(bucket)) {
    for (const LanePtr& lane : busy) {
      while (!lane->away.empty()) {
        if (is_stopping_ || lane->is_gone || base::BootClock::now() >= deadline) co_return false;
        co_await wakeup.wait_for(pause);
        pause = std::min(2 * pause, kLookMax);
      }
    }
  }
  co_return true;
}

runtime::Task<void> Shard::drain(base::SteadyTime deadline) {
  runtime::Wakeup wakeup(tools_.loop);
  while (chooser_.in_flight() > 0 && base::BootClock::now() < deadline) co_await wakeup.wait_for(2ms);
  co_await settler_.drain(deadline);
}

runtime::Task<void> Shard::cut_off() {
  is_stopping_ = true;
  tools_.client.close();
  co_return;
}

runtime::Task<void> Shard::stop() {
  co_await cut_off();
  settler_.abandon();
  loader_.abandon();
  co_await tools_.link.stop();
  co_await settler_.stop();
  co_await loader_.stop();
  co_await tasks_.join();
  timer_.cancel();
  tenant_timer_.cancel();
  house_timer_.cancel();
  tick_timer_.cancel();
  patrol_timer_.cancel();
  runtime::Yield turn{tools_.loop};
  while (is_pump_posted_) co_await turn;
}

}  // namespace postrider::delivery
