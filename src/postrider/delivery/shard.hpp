// A shard: the lanes of some buckets, served by one thread with its own HTTP client and Postgres connection.
// It shares nothing mutable with other shards; everything here is called on its loop.
//
//   committed or found rows ──► lanes ──► choose ──► attempt ──► verdict ──► settle ──► lane (retry) or done
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/delivery/attempt.hpp"
#include "postrider/delivery/choose.hpp"
#include "postrider/delivery/flights.hpp"
#include "postrider/delivery/lane_loader.hpp"
#include "postrider/delivery/lease_clock.hpp"
#include "postrider/delivery/settle.hpp"
#include "postrider/delivery/tally.hpp"
#include "postrider/http/client.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::delivery {

struct ShardOptions {
  model::NodeId node_id;
  int buckets_total = 64;  // of the schema
  ChooserLimits chooser;
  LoaderLimits loader;
  BreakerPolicy breaker;
  size_t settle_batch_items_max = 500;
  size_t lane_rows_max = 500;        // of a lane's first attempts, and again of its retries
  size_t lane_bytes_max = 4 << 20;   // of bodies, the same
  size_t rows_max = 50'000;          // in memory, all lanes together
  size_t body_bytes_max = 64 << 20;  // in memory, all lanes together
  size_t unsettled_max = 5'000;      // sent, not yet written down: beyond it nothing new is sent
  size_t answer_bytes_max = 64 << 10;
  size_t found_rows_max = 200;  // of another node's rows, read at a time, of each bucket
  std::chrono::milliseconds patrol_interval{10'000};  // one bucket each time
};

// What a shard works with. All of it outlives the shard.
struct ShardTools {
  runtime::Loop& loop;
  pg::Link& link;
  http::Client& client;
  const LeaseClock& lease;
  const model::IdSource& clock;
  const crypto::MasterKeys& keys;
  telemetry::Metrics& metrics;
  registry::SecretResolver* secrets = nullptr;
};

class Shard {
 public:
  Shard(ShardTools tools, ShardOptions options);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // The lease is committed: find the bucket's lanes and serve them.
  void take_bucket(int bucket, int64_t epoch);
  // The lease is lost: forget everything about it at once; results still under way are dropped.
  void drop_bucket(int bucket);
  // The same for all of them. Until this is called, nothing is sent under the lease's new term: its renewal
  // is seen at once, but what was lost before it may still be here.
  void drop_everything(int64_t term);
  // Sends nothing new for the bucket and returns when nothing of it is under way; then drop it. An endpoint
  // that takes longer than `patience` is waited for alone, while the others go on. False: it is not to be
  // given away, since it is lost or the shard stops.
  runtime::Task<bool> drain_bucket(int bucket, std::chrono::milliseconds patience);

  void offer(std::vector<model::CommittedDelivery> deliveries);
  struct Found {
    std::vector<int> buckets;
    model::DeliveryId first, last;
  };
  // Another node committed rows in that range of ids.
  void discover(Found found);
  // The registry changed.
  void refresh_endpoint(model::EndpointId endpoint);
  void refresh_tenant(const model::TenantId& tenant);
  void refresh_all();
  // A person canceled the delivery (its row is gone) or wants it sent now (its row is due).
  void forget_delivery(model::EndpointId endpoint, model::DeliveryId delivery);
  void hurry_delivery(model::EndpointId endpoint, model::DeliveryId delivery);
  void set_brakes(const Brakes& brakes);
  std::vector<TallyRow> take_tallies() { return tallies_.take(); }
  void rescan();         // announcements may have been missed: look at all buckets again
  void lease_renewed();  // sending may go on

  void stop_sending() { is_stopping_ = true; }
  // After stop_sending(): returns when nothing is under way, or at the deadline.
  runtime::Task<void> drain(base::SteadyTime deadline);
  runtime::Task<void> cut_off();  // exchanges under way end now, unanswered; what was answered may be settled
  runtime::Task<void> stop();     // gives up what is under way; the link is stopped with it

  // Exchanges that began before then, the oldest first, at most so many.
  std::vector<InFlight> in_flight_since(base::SteadyTime time, size_t most) const {
    return flights_.begun_before(time, most);
  }
  int in_flight() const { return chooser_.in_flight(); }
  size_t lanes() const { return lanes_.size(); }
  size_t timers() const { return wakes_.size(); }
  size_t rows() const { return totals_.rows; }
  size_t body_bytes() const { return totals_.body_bytes; }

  // What the shard can say about its queue without asking the database: rows in memory only.
  struct Gauges {
    int processing = 0;
    size_t retrying = 0;
    size_t held = 0;                    // lanes that cannot sign
    double oldest_pending_seconds = 0;  // how long the oldest sendable row has been due
  };
  Gauges gauges() const;

 private:
  struct Bucket {
    int64_t epoch;
    bool is_scanning = false;
    bool is_draining = false;
  };

  static constexpr size_t kRowsLow = 4;  // of a lane's maximum, one in so many: below it more are fetched

  Now now() const { return {base::BootClock::now(), tools_.clock.now()}; }
  LoaderEvents loader_events();

  // shard_drain.cpp
  bool has_bucket(int bucket, int64_t epoch) const;
  void halt(int bucket);
  void resume_idle(int bucket);
  std::vector<LanePtr> halted_and_busy(int bucket) const;
  runtime::Task<bool> until_idle(int bucket, base::SteadyTime deadline);

  // shard.cpp: buckets and lanes; shard_table.cpp: scan, fetch_found and sweep
  LanePtr lane_of(model::EndpointId endpoint, int bucket);
  void forget(const LanePtr& lane);
  enum class Reason { taken, missed, patrol };
  runtime::Task<void> scan(int bucket, int64_t epoch, Reason reason);
  runtime::Task<void> fetch_found(Found found);
  void take_found(const pg::Rows& rows);
  void offer_row(const LanePtr& lane, Row row, bool is_retry);
  void note_hold(const Lane& lane);
  void configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config);
  void fetched(const LanePtr& lane, Turn turn, std::vector<Row> rows, bool is_last);
  runtime::Task<void> sweep(LanePtr lane);
  runtime::Task<void> hurry_later(model::EndpointId endpoint, model::DeliveryId delivery);
  void keep_house();
  void tick();
  void notice_stall(base::SteadyTime at);
  bool has_stalled_since(uint64_t stalls);
  bool may_send(base::SteadyTime at);
  bool has_room(const RowBuffer& buffer) const;
  size_t room_for_rows(const RowBuffer& buffer) const;
  size_t rows_wanted(RowBuffer& buffer);
  bool needs_rows(const RowBuffer& buffer, bool is_resting) const;
  bool is_short_of_rows() const { return totals_.rows > options_.rows_max / 2; }
  void rest(RowBuffer& buffer);
  void patrol();
  void remember_fetched(const Row& row);

  // shard_send.cpp: choosing and sending
  void touch(const LanePtr& lane);
  void touch_turn(const LanePtr& lane, Turn turn, const Now& at);
  void wake_lane_at(const LanePtr& lane, base::SteadyTime when);
  void cancel_wake(Lane& lane);
  void run_timers();
  void set_timer();
  void pump_soon();
  void pump();
  runtime::Task<void> deliver(Chooser::Choice choice, base::SteadyTime begun_at);
  void finished(const Chooser::Choice& choice, size_t bytes);
  void conclude(Chooser::Choice& choice, AttemptResult result);
  void update_endpoint(Lane& lane, const Verdict& verdict, const AttemptFacts& facts, bool is_probe);
  void note_health(Lane& lane, bool is_failing, std::optional<std::string> probe_error);
  void expire(Chooser::Choice& choice);
  void give_up_bodiless(const LanePtr& lane, Row row);
  void share_changed();
  void put_back(const Chooser::Choice& choice, Row row);
  void settled(Settlement& settlement, Written written);
  void count(const Settlement& settlement);
  bool is_expired(const Lane& lane, const Row& row, base::Timestamp at) const;
  std::chrono::microseconds paused_for(const Lane& lane, const Row& row, base::Timestamp at) const;

  ShardTools tools_;
  ShardOptions options_;
  BufferTotals totals_;  // before everything that holds lanes
  Chooser chooser_;
  LaneLoader loader_;
  Settler settler_;
  Tallies tallies_;
  Flights flights_;
  std::map<int, Bucket> buckets_;
  int64_t term_ = 0;  // of the lease under which the buckets are held
  std::unordered_map<model::EndpointId, LanePtr> lanes_;

  // Rows of this node's own publishes that a fetch brought in before their hand-over arrived: the hand-over
  // of such a row is dropped, or it would be sent twice.
  std::unordered_set<model::DeliveryId> recent_;
  std::deque<std::pair<base::SteadyTime, model::DeliveryId>> recent_order_;

  // Canceled while rows were on their way from the table, which may be among them.
  std::unordered_map<model::DeliveryId, base::SteadyTime> canceled_;

  std::set<std::pair<base::SteadyTime, Lane*>> wakes_;  // one at most of each lane in lanes_: its wake_at
  int patrolled_ = -1;                                  // the last bucket
  runtime::Timer timer_, tenant_timer_, house_timer_, tick_timer_, patrol_timer_;
  uint64_t stalls_ = 0;  // how often the process stood still: time-outs across such a gap prove nothing
  base::SteadyTime last_tick_;
  base::SteadyTime
      woken_at_;  // after the last stall: the lease is confirmed since then before anything is sent
  bool is_pump_posted_ = false;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
