// A shard: the lanes of some buckets, served by one thread with its own HTTP client and Postgres connection.
// It shares nothing mutable with other shards, and everything here is called on its loop.
//
//   BucketReader, LaneLoader ──► lanes ──► LaneScheduler ──► Sender: choose ─► attempt ─► decide ─► settle
//
// A shard only connects its parts; each of them has a header of its own.
#pragma once

#include <memory>
#include <vector>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/expirer.hpp"
#include "postrider/delivery/lane_scheduler.hpp"
#include "postrider/delivery/lanes/bucket_drain.hpp"
#include "postrider/delivery/lanes/bucket_reader.hpp"
#include "postrider/delivery/lanes/delivery_control.hpp"
#include "postrider/delivery/lanes/lane_waits.hpp"
#include "postrider/delivery/lanes/queue_depth.hpp"
#include "postrider/registry/control_log.hpp"

namespace postrider::delivery {

struct ShardOptions {
  model::NodeId node_id;
  int buckets_total = 64;  // of the schema
  ChooserLimits chooser;
  LoaderLimits loader;
  MemoryLimits memory;
  BreakerPolicy breaker;
  BucketReader::Options reader;
  Sender::Options sender;
  size_t settle_batch_items_max = 500;
};

// A shard's dependencies. All of them outlive the shard.
struct ShardTools {
  runtime::Loop& loop;
  pg::Link& link;
  http::Client& client;
  const cluster::LeaseClock& lease;
  const model::IdSource& clock;
  const crypto::MasterKeys& keys;
  const Metrics& metrics;
  registry::SecretResolver* secrets = nullptr;
};

class Shard : private LoaderEvents {
 public:
  Shard(ShardTools tools, ShardOptions options);
  ~Shard() override;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // ── buckets ──
  void take_bucket(int bucket, int64_t epoch);  // its lease is committed
  void drop_bucket(int bucket);                 // its lease is lost: attempts in flight are not settled
  void drop_everything(int64_t term);           // the same for all; see Sender::begin_term
  runtime::Task<bool> drain_bucket(int bucket, std::chrono::milliseconds patience);  // see BucketDrain
  void lease_renewed() { sender_.send_soon(); }

  // ── work ──
  void offer(std::vector<model::CommittedDelivery> deliveries) { reader_.offer(std::move(deliveries)); }
  void discover(FoundRows found) { reader_.read(std::move(found)); }
  void rescan() { reader_.read_all(); }  // announcements may have been missed
  void cancel_delivery(model::EndpointId endpoint, model::DeliveryId delivery);
  void expedite_delivery(model::EndpointId endpoint, model::DeliveryId delivery);
  void set_brakes(const Brakes& brakes);

  // ── the registry changed ──
  void refresh_endpoint(model::EndpointId endpoint);
  void refresh_tenant(const model::TenantId& tenant);
  void refresh_all();
  // The same for the latest commit; returns when it is in force, at the latest at the deadline.
  runtime::Task<void> take_effect(registry::ChangedEndpoints changed, base::SteadyTime deadline);

  // ── ending ──
  void stop_sending();
  // After stop_sending(): returns when nothing is in flight and everything is settled, or at the deadline.
  runtime::Task<void> drain(base::SteadyTime deadline);
  // Ends the exchanges in flight without a result; those that already have one may still be settled.
  runtime::Task<void> cut_off();
  // Drops the remaining work. The database client is stopped with it.
  runtime::Task<void> stop();

  // ── what can be seen ──
  std::vector<RollupRow> take_rollups() { return sender_.take_rollups(); }
  // Exchanges that began before `time`, the oldest first, at most `most`.
  std::vector<InFlight> in_flight_since(base::SteadyTime time, size_t most) const {
    return sender_.in_flight_since(time, most);
  }
  // Call it once a second; see LaneWaits.
  std::vector<LaneWait> lane_waits();
  int in_flight() const { return chooser_.in_flight(); }
  const LaneTable& lanes() const { return lanes_; }
  const BufferTotals& memory() const { return budget_.totals(); }
  // Of the rows in memory only; the database is not asked.
  struct Gauges {
    int processing = 0;
    QueueDepth waiting;
  };
  Gauges gauges() const;

 private:
  void changed(const LanePtr& lane) override;
  void became_idle(const Lane& lane) override;
  void configured(const LanePtr& lane, std::shared_ptr<const LaneConfig> config) override;
  void body_missing(const LanePtr& lane, QueueRow row) override;

  ShardTools tools_;
  MemoryBudget budget_;  // before everything that holds rows
  SeenDeliveries seen_;
  Chooser chooser_;
  LaneTable lanes_;
  LaneWaits waits_;
  EndpointWriter endpoint_writer_;
  EndpointState endpoints_;
  LaneLoader loader_;
  BucketReader reader_;
  Sweeper sweeper_;
  Settler settler_;
  Sender sender_;
  LaneScheduler scheduler_;
  Expirer expirer_;
  BucketDrain drain_;
  DeliveryControl control_;
};

}  // namespace postrider::delivery
