// A lane: the in-memory state of one endpoint that has work. A lane belongs to one shard, and only that
// shard's thread touches it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/token_bucket.hpp"
#include "postrider/delivery/attempt/breaker.hpp"
#include "postrider/delivery/attempt/lane_config.hpp"
#include "postrider/delivery/lanes/row_buffer.hpp"

namespace postrider::delivery {

struct TenantTurn;
struct RollupCounts;

// First attempts and retries have separate buffers, so that a pile of retries never hides new events.
// All rows of a strict endpoint are `first`, in order of position, retried or not.
enum class Turn { first, retry };
inline constexpr int kTurns = 2;
inline constexpr std::array kBothTurns = {Turn::first, Turn::retry};

// Why due rows are not sent, as far as the database does not know it. Spelled as in the table lane_wait.
enum class WaitReason : uint8_t { rate, in_flight_cap, brake };
std::string_view label(WaitReason reason);

// The two clocks at one moment: `db` decides what is due, `steady` is for timers and limits.
struct Now {
  base::SteadyTime steady;
  base::Timestamp db;

  base::SteadyTime steady_of(base::Timestamp t) const {
    return t <= db ? steady : steady + std::chrono::duration_cast<std::chrono::nanoseconds>(t - db);
  }
};

class Lane {
 public:
  struct Home {
    int bucket;
    int64_t epoch;  // of the lease under which it sends
  };
  Lane(model::EndpointId endpoint, Home home, BufferTotals& totals, BreakerPolicy breaker = {});

  const model::EndpointId endpoint;
  const int bucket;
  const int64_t epoch;

  // ── configuration ──
  const std::shared_ptr<const LaneConfig>& config() const { return config_; }  // null: not loaded yet
  // Takes a new configuration. If the ordering changed, the rows are read again.
  void configure(std::shared_ptr<const LaneConfig> config, const Now& now);
  bool is_strict() const { return config_ && config_->endpoint.is_strict(); }
  TenantTurn* tenant() const { return in_chooser_.tenant; }  // null until the configuration is loaded

  // ── rows ──
  RowBuffer& buffer(Turn turn) { return buffers_[static_cast<size_t>(turn)]; }
  const RowBuffer& buffer(Turn turn) const { return buffers_[static_cast<size_t>(turn)]; }
  size_t rows() const { return buffers_[0].size() + buffers_[1].size(); }
  bool is_fetching() const { return buffers_[0].is_fetching() || buffers_[1].is_fetching(); }
  bool has_work() const;   // rows in memory, outstanding, or possibly in the table
  bool is_in_use() const;  // has work, or another class still has it in a list
  bool is_known(model::DeliveryId id) const;
  // The table may have rows of either turn that are not in memory.
  void expect_more();
  // Drops all rows from memory; they stay in the table.
  void drop_rows();

  // ── sending ──
  // The reason why nothing can be sent in this turn.
  enum class Wait {
    ready,   // may be sent now
    body,    // its body is not in memory
    time,    // at `until`
    event,   // something else has to happen first: a response, a fetch, a resume
    nothing  // no rows
  };
  struct Readiness {
    Wait wait = Wait::nothing;
    base::SteadyTime until{};
    bool is_probe = false;
    std::optional<WaitReason> reason{};
  };
  Readiness readiness(Turn turn, const Now& now);

  // The row to send next, ready or not. Call only when there are rows.
  const QueueRow& next(Turn turn, const Now& now) const;

  // Call only when ready: takes the next row and counts it as in flight and outstanding.
  QueueRow start(Turn turn, const Now& now);
  // The exchange is over, or never began. The row stays outstanding until release().
  void finished_exchange() { --in_flight_; }

  // A row is outstanding while it is in no buffer but still this lane's: in flight, or being settled.
  // A strict lane sends nothing else meanwhile.
  void add_outstanding(model::DeliveryId id) { outstanding_.push_back(id); }
  void release(model::DeliveryId id);
  bool has_outstanding() const { return !outstanding_.empty(); }
  int in_flight() const { return in_flight_; }

  Breaker& breaker() { return breaker_; }
  const Breaker& breaker() const { return breaker_; }

  // Sends nothing before then: Retry-After, or a pause after a failure of this node. Never shortens a hold.
  void hold_until(base::SteadyTime until) { held_until_ = std::max(held_until_, until); }
  void lift_hold() { held_until_ = {}; }
  base::SteadyTime held_until() const { return held_until_; }

  // The bucket is being released to another node: nothing new is sent.
  void set_draining(bool is_draining) { is_draining_ = is_draining; }
  bool is_draining() const { return is_draining_; }
  // The bucket was lost: results of attempts and loads that are still running are dropped.
  void lose() { is_gone_ = true; }
  bool is_gone() const { return is_gone_; }

 private:
  size_t next_index(const RowBuffer& rows, const Now& now) const;
  static size_t soonest(const RowBuffer& buffer, const Now& now);

  std::shared_ptr<const LaneConfig> config_;
  std::array<RowBuffer, kTurns> buffers_;
  std::vector<model::DeliveryId> outstanding_;
  int in_flight_ = 0;
  Breaker breaker_;
  std::optional<base::TokenBucket> rate_;
  base::SteadyTime held_until_{};
  size_t probes_ = 0;
  bool is_gone_ = false;
  bool is_draining_ = false;

  // What other classes note about a lane, so that none of them needs a look-up for it. Each group belongs to
  // the class named before it, and only that class changes it.
  friend class Chooser;
  struct {
    TenantTurn* tenant = nullptr;
    bool is_listed[kTurns] = {false, false};  // in each list at most once
  } in_chooser_;

  friend class LaneLoader;
  struct LoaderMarks {
    bool wants_config = false, wants_rows = false, wants_bodies = false;
  } in_loader_;

  friend class LaneTable;
  struct {
    base::SteadyTime wake_at = base::SteadyTime::max();
    base::SteadyTime idle_since{};  // zero: it has work
  } in_table_;

  friend class Sweeper;
  bool is_sweeping_ = false;

  friend class LaneWaits;
  struct WaitMarks {
    std::optional<WaitReason> seen, noted;
  };
  std::array<WaitMarks, kTurns> in_waits_;

  friend class Expirer;
  bool is_expiring_ = false;  // rows expired: those that are read next may have, too

  friend class EndpointState;
  struct {
    int rejected_in_row = 0;
    int failures = 0;                                  // exchanges without a success since
    bool is_failing = false, is_breaker_open = false;  // as last written
    std::optional<base::Timestamp> succeeded_at;       // the last success
    std::optional<base::Timestamp> noted_success_at;   // as last written
    std::optional<base::Timestamp> noted_failure_at;   // the last one that was written here
  } health_;

  friend class RollupCounter;
  struct {
    RollupCounts* counts = nullptr;  // to which the last settlement was added
    uint64_t generation = 0;         // of the counter that it belongs to
  } rollup_;
};

// Shared, because a lane may be dropped while its attempts are still running.
using LanePtr = std::shared_ptr<Lane>;

class LaneEvents {
 public:
  virtual ~LaneEvents() = default;
  // A change after which the lane may be able to continue.
  virtual void changed(const LanePtr& lane) = 0;
  // The lane has nothing outstanding any more.
  virtual void became_idle(const Lane& lane) = 0;
};

}  // namespace postrider::delivery
