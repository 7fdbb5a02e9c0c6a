// Step "choose": which lane sends next. Fair over tenants, then over a tenant's lanes; first attempts before
// retries, which have their own share and may use idle slots.
//
// Fair also over occupied slots: a tenant starts a send only while it has fewer in flight than the shard has
// free (the same for bytes, and for retries and their share), so that hanging endpoints of a few tenants
// never fill the shard.
#pragma once

#include <boost/container/devector.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "postrider/delivery/lanes/lane.hpp"

namespace postrider::delivery {

struct TenantLimits {
  std::optional<int> max_in_flight;
  std::optional<double> rate_per_second;
};

// A tenant as one shard sees it.
struct TenantTurn {
  model::TenantId id;
  size_t lanes = 0;  // that belong to it
  int in_flight = 0;
  int retries_in_flight = 0;  // of them
  size_t bytes_in_flight = 0;
  TenantLimits limits;               // of the tenant everywhere
  std::optional<int> max_in_flight;  // this shard's share of them
  std::optional<base::TokenBucket> rate;

  boost::container::devector<LanePtr> ready[kTurns];  // 32 bytes when empty, unlike std::deque
  bool in_turn[kTurns] = {false, false};
};

// For incidents: what the whole cluster may send. Set by people, acts within a second.
struct Brakes {
  bool is_paused = false;
  std::optional<double> retry_rate_per_second{};  // retries of unordered endpoints
  std::optional<double> drain_rate_per_second{};  // everything together
  registry::PauseSpans pauses{};                  // when everything was paused
};

struct ChooserLimits {
  int in_flight_max = 4096;
  size_t bytes_in_flight_max = 64u << 20;
  int retry_in_flight_max = 2048;
  int retry_every = 5;  // every fifth choice is offered to retries first
};

class Chooser {
 public:
  explicit Chooser(ChooserLimits limits) : limits_(limits) {}

  // The tenant of a lane is known once its configuration is; the limits are the tenant's.
  void join(Lane& lane, const model::TenantId& tenant);
  // The lane is dropped. Its attempts count for the tenant until they end.
  void leave(Lane& lane);

  // The lane may have become ready for this turn. Harmless if it is not, or if it is listed already.
  void add(const LanePtr& lane, Turn turn);

  struct Choice {
    LanePtr lane;
    Turn turn;
    QueueRow row;
    bool is_probe;
  };
  // The next send, counted as in flight. Nothing: no slot is free, or no lane is ready. `not_ready` collects
  // lanes that turned out to be waiting for something, so that the caller can arrange it.
  std::optional<Choice> next(const Now& now, std::vector<LanePtr>& not_ready);

  // Why a lane that is ready for this turn is not chosen, as far as the database does not know it.
  std::optional<WaitReason> reason_to_wait(const Lane& lane, Turn turn, base::SteadyTime now);

  struct Finished {
    TenantTurn& tenant;
    Turn turn;
    size_t bytes;
  };
  void finished(const Finished& send);

  // The time at which a tenant that only waits for its rate may continue.
  std::optional<base::SteadyTime> next_tenant_at() const { return next_tenant_at_; }

  TenantTurn& tenant(const model::TenantId& id);
  void set_limits(TenantTurn& tenant, const TenantLimits& limits, base::SteadyTime now);
  // This shard's part of all buckets, in (0, 1]: its share of every tenant's limits.
  void set_share(double share, base::SteadyTime now);
  void set_brakes(const Brakes& brakes, base::SteadyTime now);
  void forget_unused_tenants();  // those without lanes, attempts in flight and a place in a list

  int in_flight() const { return in_flight_; }
  bool is_paused() const { return brakes_.is_paused; }
  const registry::PauseSpans& brake_pauses() const { return brakes_.pauses; }
  size_t bytes_in_flight() const { return bytes_in_flight_; }
  size_t tenants() const { return tenants_.size(); }

 private:
  std::optional<Choice> next_of(Turn turn, const Now& now, std::vector<LanePtr>& not_ready);
  LanePtr next_ready_lane(TenantTurn& tenant, Turn turn, const Now& now, std::vector<LanePtr>& not_ready);
  Choice start(TenantTurn& tenant, const LanePtr& lane, Turn turn, const Now& now);
  bool may_start(TenantTurn& tenant, Turn turn, const Now& now);
  bool is_full() const {
    return in_flight_ >= limits_.in_flight_max || bytes_in_flight_ >= limits_.bytes_in_flight_max;
  }
  bool has_slot(const TenantTurn& tenant, Turn turn) const;
  void enqueue(TenantTurn& tenant, Turn turn);
  void unpark();

  bool is_braked(std::optional<base::TokenBucket>& rate, base::SteadyTime now);
  void set_brake_rates(base::SteadyTime now);

  ChooserLimits limits_;
  Brakes brakes_;
  std::optional<base::TokenBucket> retry_brake_, drain_brake_;  // this shard's share of them
  std::unordered_map<model::TenantId, std::unique_ptr<TenantTurn>> tenants_;
  std::deque<TenantTurn*> turns_[kTurns];
  std::vector<TenantTurn*> parked_[kTurns];  // have ready lanes but no right to a slot just now
  std::optional<base::SteadyTime> next_tenant_at_;
  double share_ = 1;
  int in_flight_ = 0;
  int retries_in_flight_ = 0;
  size_t bytes_in_flight_ = 0;
  unsigned choices_ = 0;
};

}  // namespace postrider::delivery
