#include "postrider/delivery/shard.hpp"

#include <algorithm>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kHouseInterval = 1s;
constexpr auto kTick = 250ms;
constexpr auto kStall = 1s;
constexpr auto kIdleLaneKept = 60s;
constexpr auto kRecentKept = 10s;
constexpr size_t kRecentMax = 100'000;
constexpr auto kCanceledKept = 30s;  // longer than any fetch
constexpr size_t kRowsResting = 2;   // kept by a lane that cannot send soon, when memory is short

}  // namespace

Shard::Shard(ShardTools tools, ShardOptions options)
    : tools_(tools),
      options_(options),
      chooser_(options.chooser),
      loader_(tools.loop, tools.link, tools.keys, tools.metrics, options.loader, loader_events(),
              tools.secrets),
      settler_(tools.loop, tools.link, tools.metrics,
               {.node_id = options.node_id, .batch_items_max = options.settle_batch_items_max},
               [this](Settlement& settlement, Written written) { settled(settlement, written); }),
      timer_(tools.loop),
      tenant_timer_(tools.loop),
      house_timer_(tools.loop),
      tick_timer_(tools.loop),
      patrol_timer_(tools.loop),
      last_tick_(base::BootClock::now()) {
  house_timer_.call_after(kHouseInterval, [this] { keep_house(); });
  tick_timer_.call_after(kTick, [this] { tick(); });
  patrol_timer_.call_after(options_.patrol_interval, [this] { patrol(); });
}

Shard::~Shard() = default;

LoaderEvents Shard::loader_events() {
  LoaderEvents events;
  events.configured = [this](const LanePtr& lane, std::shared_ptr<const LaneConfig> config) {
    configured(lane, std::move(config));
  };
  events.rows_wanted = [this](RowBuffer& buffer) { return rows_wanted(buffer); };
  events.has_room_for_bodies = [this](const RowBuffer& buffer) {
    return totals_.body_bytes < options_.body_bytes_max && buffer.body_bytes() < options_.lane_bytes_max;
  };
  events.waits_for_body = [this](Lane& lane, Turn turn) -> const Row* {
    const Now at = now();
    return lane.readiness(turn, at).wait == Lane::Wait::body ? &lane.next(turn, at) : nullptr;
  };
  events.fetched = [this](const LanePtr& lane, Turn turn, std::vector<Row> rows, bool is_last) {
    fetched(lane, turn, std::move(rows), is_last);
  };
  events.fetch_failed = [this](const LanePtr& lane) { touch(lane); };
  events.bodies_loaded = [this](const LanePtr& lane) { touch(lane); };
  events.body_missing = [this](const LanePtr& lane, Row row) { give_up_bodiless(lane, std::move(row)); };
  return events;
}

void Shard::take_bucket(int bucket, int64_t epoch) {
  drop_bucket(bucket);
  buckets_[bucket] = {.epoch = epoch, .is_scanning = true, .is_draining = false};
  share_changed();
  tasks_.spawn(scan(bucket, epoch, Reason::taken));
}

void Shard::share_changed() {
  if (buckets_.empty()) return;
  chooser_.set_share(static_cast<double>(buckets_.size()) / options_.buckets_total, now().steady);
}

void Shard::drop_bucket(int bucket) {
  if (buckets_.erase(bucket) == 0) return;
  share_changed();
  std::vector<LanePtr> lost;
  for (const auto& [id, lane] : lanes_)
    if (lane->bucket == bucket) lost.push_back(lane);
  for (const LanePtr& lane : lost) forget(lane);
}

void Shard::drop_everything(int64_t term) {
  while (!buckets_.empty()) drop_bucket(buckets_.begin()->first);
  term_ = term;
}

void Shard::rescan() {
  for (auto& [bucket, state] : buckets_) {
    state.is_scanning = true;
    tasks_.spawn(scan(bucket, state.epoch, Reason::missed));
  }
}

LanePtr Shard::lane_of(model::EndpointId endpoint, int bucket) {
  LanePtr& lane = lanes_[endpoint];
  if (lane) return lane;
  const Bucket& home = buckets_.at(bucket);
  lane = std::make_shared<Lane>(endpoint, Lane::Home{bucket, home.epoch}, totals_);
  lane->breaker = Breaker(options_.breaker);
  tools_.metrics.lanes.add(1);
  lane->is_draining = home.is_draining;
  if (home.is_scanning) {
    // Taken over: older rows may be in the table, and the node before may still have attempts under way.
    lane->buffer(Turn::first).expect_more();
    lane->buffer(Turn::retry).expect_more();
    lane->breaker.start_ramp();
  }
  return lane;
}

void Shard::forget(const LanePtr& lane) {
  const LanePtr kept = lane;
  kept->is_gone = true;  // whoever still holds it (an attempt, a load under way) leaves it alone from now on
  cancel_wake(*kept);
  lanes_.erase(kept->endpoint);
  tools_.metrics.lanes.add(-1);
  // A lost lane's attempts still count for its tenant until they end; then keep_house() forgets it.
  if (kept->tenant != nullptr) --kept->tenant->lanes;
}

// Counted for each turn apart: a pile of retries that are due in hours must not keep fresh events out.
bool Shard::has_room(const RowBuffer& buffer) const {
  if (buffer.empty()) return true;  // each may always hold one
  return buffer.size() < options_.lane_rows_max && buffer.body_bytes() < options_.lane_bytes_max &&
         totals_.rows < options_.rows_max && totals_.body_bytes < options_.body_bytes_max;
}

// What may be sooner than the rows in memory takes their place; they are read again behind it.
size_t Shard::rows_wanted(RowBuffer& buffer) {
  if (buffer.may_have_sooner()) buffer.shrink(options_.lane_rows_max / kRowsLow);
  if (buffer.may_have_sooner() && room_for_rows(buffer) == 0) buffer.shrink(0);
  return room_for_rows(buffer);
}

size_t Shard::room_for_rows(const RowBuffer& buffer) const {
  const size_t of_lane = options_.lane_rows_max - std::min(options_.lane_rows_max, buffer.size());
  const size_t of_shard = options_.rows_max - std::min(options_.rows_max, totals_.rows);
  const size_t wanted = std::min(of_lane, of_shard);
  // Two at least, or none: a fetch begins at its cursor, and a row that is known already is no progress.
  if (wanted >= 2) return wanted;
  return buffer.empty() ? 2 : 0;
}

void Shard::offer(std::vector<model::CommittedDelivery> deliveries) {
  const base::Timestamp at = tools_.clock.now();
  for (model::CommittedDelivery& delivery : deliveries) {
    if (!buckets_.contains(delivery.bucket) || recent_.contains(delivery.id)) continue;
    Row row;
    row.key = {delivery.position, delivery.due_at, delivery.id};
    row.event_id = delivery.event->id;
    row.created_at = delivery.created_at;
    row.event = std::move(delivery.event);
    const LanePtr lane = lane_of(delivery.endpoint_id, delivery.bucket);
    // So late that it may have been found, sent and forgotten: the table knows.
    if (at - row.created_at > kRecentKept) {
      lane->buffer(Turn::first).expect_more_from(row.key);
      touch(lane);
      continue;
    }
    offer_row(lane, std::move(row), false);
  }
}

void Shard::offer_row(const LanePtr& lane, Row row, bool is_retry) {
  RowBuffer& buffer = lane->buffer(is_retry ? Turn::retry : Turn::first);
  buffer.offer(std::move(row), has_room(buffer));
  touch(lane);
}

void Shard::discover(Found found) {
  std::erase_if(found.buckets, [this](int bucket) { return !buckets_.contains(bucket); });
  if (!found.buckets.empty()) tasks_.spawn(fetch_found(std::move(found)));
}

void Shard::configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config) {
  if (!config) {
    telemetry::log_error("endpoint_missing").field("endpoint_id", lane->endpoint.outside());
    return;
  }
  const registry::EndpointConfig& endpoint = config->endpoint;
  if (lane->tenant == nullptr) {
    lane->tenant = &chooser_.tenant(endpoint.tenant_id);
    ++lane->tenant->lanes;
    lane->is_breaker_open = endpoint.is_breaker_open;
    lane->is_failing = endpoint.is_failing;
    lane->failures = endpoint.failures;
  }
  const TenantLimits limits{endpoint.tenant_max_in_flight, endpoint.tenant_rate_per_second};
  chooser_.set_limits(*lane->tenant, limits, now().steady);
  lane->configure(std::move(config), now());
  note_hold(*lane);
  touch(lane);
}

// Compared with what the endpoint's row said when it was loaded, which another node may have written.
void Shard::note_hold(const Lane& lane) {
  if (lane.config->is_first_lookup) return;
  std::string reason = lane.config->held_reason();
  if (reason != lane.config->endpoint.held_reason) settler_.note_hold(lane.endpoint, std::move(reason));
}

void Shard::fetched(const LanePtr& lane, Turn turn, std::vector<Row> rows, bool is_last) {
  if (lane->is_gone) return;
  for (const Row& row : rows) remember_fetched(row);
  lane->buffer(turn).fetched(std::move(rows), is_last, [&lane, this](model::DeliveryId id) {
    return lane->is_known(id) || canceled_.contains(id);
  });
  touch(lane);
}

void Shard::remember_fetched(const Row& row) {
  const Now at = now();
  if (row.attempts > 0 || at.db - row.created_at > kRecentKept) return;
  while (!recent_order_.empty() &&
         (recent_order_.size() >= kRecentMax || at.steady - recent_order_.front().first > kRecentKept)) {
    recent_.erase(recent_order_.front().second);
    recent_order_.pop_front();
  }
  if (recent_.insert(row.id()).second) recent_order_.emplace_back(at.steady, row.id());
}

void Shard::refresh_endpoint(model::EndpointId endpoint) {
  if (const auto found = lanes_.find(endpoint); found != lanes_.end()) loader_.want_config(found->second);
}

void Shard::refresh_tenant(const model::TenantId& tenant) {
  for (const auto& [id, lane] : lanes_)
    if (lane->tenant == nullptr || lane->tenant->id == tenant) loader_.want_config(lane);
}

void Shard::refresh_all() {
  for (const auto& [id, lane] : lanes_) loader_.want_config(lane);
}

void Shard::keep_house() {
  house_timer_.call_after(kHouseInterval, [this] { keep_house(); });
  const auto at = base::BootClock::now();
  std::vector<LanePtr> idle;
  for (const auto& [id, lane] : lanes_)
    if (!lane->has_work() && lane->in_flight == 0 && !lane->is_sweeping && !lane->wants_config &&
        lane->idle_since != base::SteadyTime{} && at - lane->idle_since > kIdleLaneKept &&
        lane->held_until < at)
      idle.push_back(lane);
  for (const LanePtr& lane : idle)
    if (!lane->in_turn[0] && !lane->in_turn[1]) {
      // Nothing is left that could be held, and nobody will look again.
      if (lane->config && !lane->config->held_reason().empty()) settler_.note_hold(lane->endpoint, "");
      forget(lane);
    }
  chooser_.forget_unused_tenants();
  std::erase_if(canceled_, [at](const auto& entry) { return at - entry.second > kCanceledKept; });
  if (is_short_of_rows())
    for (const auto& [id, lane] : lanes_)
      if (lane->rows() > 2 * kRowsResting) touch(lane);
  pump_soon();
}

// Every row is announced. Should one not be, it is late and not lost: each bucket is looked at now and then.
void Shard::patrol() {
  patrol_timer_.call_after(options_.patrol_interval, [this] { patrol(); });
  if (buckets_.empty()) return;
  auto next = buckets_.upper_bound(patrolled_);
  if (next == buckets_.end()) next = buckets_.begin();
  patrolled_ = next->first;
  if (!next->second.is_scanning && !next->second.is_draining)
    tasks_.spawn(scan(next->first, next->second.epoch, Reason::patrol));
}

// A lane that cannot send within a second: its bodies, and most of its rows, may be had again from the table.
void Shard::rest(RowBuffer& buffer) {
  buffer.drop_bodies();
  if (is_short_of_rows() && buffer.size() > kRowsResting) buffer.shrink(kRowsResting);
}

bool Shard::needs_rows(const RowBuffer& buffer, bool is_resting) const {
  if (!buffer.may_have_more() || buffer.is_fetching()) return false;
  if (buffer.may_have_sooner()) return true;
  return !is_resting && buffer.size() <= options_.lane_rows_max / kRowsLow && room_for_rows(buffer) > 0;
}

Shard::Gauges Shard::gauges() const {
  Gauges gauges{.processing = chooser_.in_flight()};
  const base::Timestamp at = tools_.clock.now();
  for (const auto& [id, lane] : lanes_) {
    gauges.retrying += lane->buffer(Turn::retry).size();
    if (lane->config && !lane->config->held_reason().empty()) ++gauges.held;
    for (const Turn turn : {Turn::first, Turn::retry}) {
      const Row* next = lane->buffer(turn).front();
      if (next == nullptr || next->key.due_at > at) continue;
      const double waiting = std::chrono::duration<double>(at - next->key.due_at).count();
      gauges.oldest_pending_seconds = std::max(gauges.oldest_pending_seconds, waiting);
    }
  }
  return gauges;
}

void Shard::tick() {
  tick_timer_.call_after(kTick, [this] { tick(); });
  notice_stall(base::BootClock::now());
}

// Whoever comes first after a stall, a timer, an answer or the tick, notices it.
void Shard::notice_stall(base::SteadyTime at) {
  const auto gap = at - std::exchange(last_tick_, at);
  if (gap <= kStall) return;
  ++stalls_;
  woken_at_ = at;
  telemetry::log_warn("process_stalled").field("seconds", std::chrono::duration<double>(gap).count());
}

bool Shard::has_stalled_since(uint64_t stalls) {
  notice_stall(base::BootClock::now());
  return stalls != stalls_;
}

bool Shard::may_send(base::SteadyTime at) {
  notice_stall(at);
  const LeaseClock& lease = tools_.lease;
  return lease.is_valid(at) && lease.term() == term_ && lease.is_confirmed_since(woken_at_);
}

}  // namespace postrider::delivery
