#include "postrider/delivery/lanes/lane_table.hpp"

#include <utility>

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kIdleLaneKept = 60s;

}  // namespace

LaneTable::LaneTable(runtime::Loop& loop, const Metrics& metrics, Options options, BufferTotals& totals,
                     Chooser& chooser, LaneEvents& events)
    : metrics_(metrics),
      options_(options),
      totals_(totals),
      chooser_(chooser),
      events_(events),
      timer_(loop) {}

void LaneTable::add_bucket(int bucket, int64_t epoch) {
  remove_bucket(bucket);
  buckets_[bucket] = {.epoch = epoch, .is_scanning = true, .is_draining = false};
  share_changed();
}

void LaneTable::remove_bucket(int bucket) {
  if (buckets_.erase(bucket) == 0) return;
  share_changed();
  for (const LanePtr& lane : lanes_of(bucket)) forget(lane);
}

void LaneTable::remove_all_buckets() {
  while (!buckets_.empty()) remove_bucket(buckets_.begin()->first);
}

void LaneTable::share_changed() {
  if (buckets_.empty()) return;
  const double share = static_cast<double>(buckets_.size()) / options_.buckets_total;
  chooser_.set_share(share, base::BootClock::now());
}

LaneTable::Bucket* LaneTable::find_bucket(int bucket) {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : &found->second;
}

bool LaneTable::has_bucket(int bucket, int64_t epoch) const {
  const auto found = buckets_.find(bucket);
  return found != buckets_.end() && found->second.epoch == epoch;
}

std::vector<LanePtr> LaneTable::lanes_of(int bucket) const {
  std::vector<LanePtr> found;
  for (const auto& [id, lane] : lanes_)
    if (lane->bucket == bucket) found.push_back(lane);
  return found;
}

LanePtr LaneTable::find(model::EndpointId endpoint) const {
  const auto found = lanes_.find(endpoint);
  return found == lanes_.end() ? nullptr : found->second;
}

LanePtr LaneTable::get_or_create(model::EndpointId endpoint, int bucket) {
  LanePtr& lane = lanes_[endpoint];
  if (lane) return lane;
  const Bucket& home = buckets_.at(bucket);
  lane = std::make_shared<Lane>(endpoint, Lane::Home{bucket, home.epoch}, totals_, options_.breaker);
  metrics_.lanes.add(1);
  lane->set_draining(home.is_draining);
  if (home.is_scanning) {
    // After a takeover there may be older rows in the table, and the previous owner may still have attempts
    // in flight.
    lane->expect_more();
    lane->breaker().start_ramp();
  }
  return lane;
}

void LaneTable::forget(const LanePtr& lane) {
  const LanePtr kept = lane;  // `lane` may be the entry that is erased
  kept->lose();
  cancel_wake(*kept);
  lanes_.erase(kept->endpoint);
  metrics_.lanes.add(-1);
  chooser_.leave(*kept);
}

std::vector<LanePtr> LaneTable::idle_lanes(base::SteadyTime now) const {
  std::vector<LanePtr> idle;
  for (const auto& [id, lane] : lanes_) {
    const base::SteadyTime since = lane->in_table_.idle_since;
    if (since != base::SteadyTime{} && now - since > kIdleLaneKept && !lane->is_in_use() &&
        lane->held_until() < now)
      idle.push_back(lane);
  }
  return idle;
}

void LaneTable::note_work(Lane& lane, base::SteadyTime now) {
  lane.in_table_.idle_since = lane.has_work() ? base::SteadyTime{} : now;
}

void LaneTable::wake_at(const LanePtr& lane, base::SteadyTime when) {
  if (lane->in_table_.wake_at <= when) return;
  cancel_wake(*lane);
  lane->in_table_.wake_at = when;
  const auto placed = wakes_.emplace(when, lane.get()).first;
  if (placed == wakes_.begin()) set_timer();
}

void LaneTable::cancel_wake(Lane& lane) {
  wakes_.erase({lane.in_table_.wake_at, &lane});
  lane.in_table_.wake_at = base::SteadyTime::max();
}

void LaneTable::set_timer() {
  if (!wakes_.empty()) timer_.call_at(wakes_.begin()->first, [this] { run_timers(); });
}

void LaneTable::run_timers() {
  const auto now = base::BootClock::now();
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    const LanePtr lane = lanes_.at(wakes_.begin()->second->endpoint);
    cancel_wake(*lane);
    events_.changed(lane);
  }
  set_timer();
}

}  // namespace postrider::delivery
