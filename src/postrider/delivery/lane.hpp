// A lane: the in-memory state of one endpoint that has work. Owned by one shard and touched by its thread
// only.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/base/token_bucket.hpp"
#include "postrider/delivery/breaker.hpp"
#include "postrider/delivery/lane_config.hpp"
#include "postrider/delivery/row_buffer.hpp"
#include "postrider/delivery/tally_slot.hpp"

namespace postrider::delivery {

struct Tenant;

// First attempts and retries have buffers of their own, so that a pile of retries never hides fresh events.
// The rows of a strict endpoint are all `first`, in order of position, retried or not.
enum class Turn { first, retry };
inline constexpr int kTurns = 2;

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
  Lane(model::EndpointId endpoint, Home home, BufferTotals& totals);

  const model::EndpointId endpoint;
  const int bucket;
  const int64_t epoch;

  Tenant* tenant = nullptr;                  // known once the configuration is
  std::shared_ptr<const LaneConfig> config;  // null: not loaded yet
  Breaker breaker;
  std::optional<base::TokenBucket> rate;
  base::SteadyTime held_until{};  // Retry-After of a 429 or 503
  int rejected_in_row = 0;

  int in_flight = 0;                    // HTTP exchanges under way
  std::vector<model::DeliveryId> away;  // in flight or being settled: in no buffer, but ours
  bool is_gone = false;                 // the bucket was lost: results are dropped
  bool is_draining = false;             // the bucket is being handed over: nothing new is sent

  // Marks for the shard's lists, so that a lane is in each at most once.
  bool in_turn[kTurns] = {false, false};
  bool wants_config = false, wants_rows = false, wants_bodies = false, is_sweeping = false;
  bool is_failing = false;       // as last written down
  int failures = 0;              // exchanges without a success since
  bool is_breaker_open = false;  // as last written down
  base::SteadyTime wake_at = base::SteadyTime::max();
  base::SteadyTime idle_since{};
  TallySlot tally;

  RowBuffer& buffer(Turn turn) { return buffers_[static_cast<size_t>(turn)]; }
  const RowBuffer& buffer(Turn turn) const { return buffers_[static_cast<size_t>(turn)]; }
  size_t rows() const { return buffers_[0].size() + buffers_[1].size(); }
  size_t body_bytes() const { return buffers_[0].body_bytes() + buffers_[1].body_bytes(); }
  bool has_work() const;  // rows in memory, maybe in the table, or away
  bool is_known(model::DeliveryId id) const;

  // Takes a new configuration; an ordering that changed makes the rows be read again.
  void configure(std::shared_ptr<const LaneConfig> fresh, const Now& now);
  bool is_strict() const { return config && config->endpoint.is_strict(); }

  // What keeps this turn from being sent.
  enum class Wait {
    ready,   // may be sent now
    body,    // its body is not in memory
    time,    // at `until`
    event,   // something else has to happen first: an answer, a fetch, a resume
    nothing  // no rows
  };
  struct Readiness {
    Wait wait = Wait::nothing;
    base::SteadyTime until{};
    bool is_probe = false;
  };
  Readiness readiness(Turn turn, const Now& now);

  // The row that is sent next, ready or not; call only when there are rows.
  const Row& next(Turn turn, const Now& now) const;

  // Call only when ready: the next row, counted as in flight.
  Row start(Turn turn, const Now& now);
  // The exchange is over, or never began. A strict lane keeps its place until settled().
  void finished_exchange() { --in_flight; }
  void settled(model::DeliveryId id);

 private:
  size_t next_index(const RowBuffer& rows, const Now& now) const;
  static size_t soonest(const RowBuffer& buffer, const Now& now);

  std::array<RowBuffer, kTurns> buffers_;
  size_t probes_ = 0;
};

}  // namespace postrider::delivery
