// Sends what the chooser picks. Sender::deliver() is one attempt from start to end:
//
//   choose ──► attempt ──► decide ──► record (log, endpoint state) ──► settle ──► done, or a retry in the
//   lane
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/version.hpp"
#include "postrider/cluster/lease_clock.hpp"
#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/delivery/attempt/expiry.hpp"
#include "postrider/delivery/attempt/metrics.hpp"
#include "postrider/delivery/lanes/choose.hpp"
#include "postrider/delivery/lanes/memory_budget.hpp"
#include "postrider/delivery/report/in_flight.hpp"
#include "postrider/delivery/report/rollup_counts.hpp"
#include "postrider/delivery/settle/dead_letter.hpp"
#include "postrider/delivery/settle/endpoint_state.hpp"
#include "postrider/delivery/settle/settle.hpp"
#include "postrider/delivery/stall_watch.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::delivery {

struct SenderTools {
  runtime::Loop& loop;
  http::Client& client;
  const cluster::LeaseClock& lease;
  const model::IdSource& clock;
  const Metrics& metrics;
  Chooser& chooser;
  EndpointState& endpoints;
  Settler& settler;
  const MemoryBudget& budget;
};

class Sender {
 public:
  struct Options {
    size_t unsettled_max = 5'000;  // with this many unwritten results, nothing new is sent
    size_t response_bytes_max = 64 << 10;
    std::string user_agent = "postrider/" + std::string(base::kVersion);
  };
  Sender(SenderTools tools, Options options, LaneEvents& events);

  // The lane may have become ready for this turn.
  void add(const LanePtr& lane, Turn turn);
  // A change after which sending may be able to continue: a slot, a limit, the lease.
  void send_soon();
  // All buckets were lost with their lease. Nothing is sent under the lease's new term before this is called:
  // its renewal is visible at once, while rows of the lost term may still be here.
  void begin_term(int64_t term) { term_ = term; }
  // The row, which is in no buffer, becomes a dead letter.
  void dead_letter(const LanePtr& lane, QueueRow row, Ending ending);

  // ── deadlines ──
  // The rows of the lane that have expired. The lane is configured.
  Expiry expiry_of(const Lane& lane) const;
  // As dead_letter(), for a row that has expired.
  void expire(const LanePtr& lane, QueueRow row);
  size_t expiring() const { return expiring_; }  // of them, not yet written
  // To be called every second or so. False: nothing may be sent or ended now. Notes times during which that
  // was so, because deadlines that passed meanwhile count as unserved.
  bool look_at_service();

  void stop_sending() { is_stopping_ = true; }
  bool is_stopping() const { return is_stopping_; }
  // After stop_sending(): returns when no exchange is running, or at the deadline.
  runtime::Task<void> drain(base::SteadyTime deadline);
  // Returns when all attempts have ended. The client must be closed and the settler stopped.
  runtime::Task<void> stop();

  std::vector<InFlight> in_flight_since(base::SteadyTime time, size_t most) const {
    return exchanges_.started_before(time, most);
  }
  std::vector<RollupRow> take_rollups() { return rollups_.take(); }

 private:
  Now now() const { return {base::BootClock::now(), tools_.clock.now()}; }
  bool may_send(base::SteadyTime at);
  void send_ready_lanes();

  runtime::Task<void> deliver(Chooser::Choice choice, base::SteadyTime begun_at);
  bool is_expired(const Chooser::Choice& choice) const;
  registry::PauseSpans pauses_of(const Lane& lane) const;
  bool is_conclusive(const AttemptResult& result, const Lane& lane, uint64_t stalls);
  AttemptContext context_of(const Chooser::Choice& choice, const Now& at) const;
  void record(const Chooser::Choice& choice, const Verdict& verdict, const AttemptResult& result,
              const Now& at);
  void free_slot(const Chooser::Choice& choice, size_t bytes);
  void put_back(Chooser::Choice& choice);
  void release(Lane& lane, const QueueRow& row);
  runtime::Task<void> settle(LanePtr lane, QueueRow row, Ending ending);
  runtime::Task<void> settle_expired(LanePtr lane, QueueRow row);
  void settled(Settlement& settlement, Written written);
  void schedule_retry(Lane& lane, QueueRow row, base::Timestamp due_at);
  void count(const Settlement& settlement);

  SenderTools tools_;
  Options options_;
  LaneEvents& events_;
  StallWatch stalls_;
  ExchangesInFlight exchanges_;
  RollupCounter rollups_;
  int64_t term_ = 0;  // of the lease under which the buckets are held
  size_t expiring_ = 0;
  std::optional<base::Timestamp> served_at_;  // when it was last found so
  registry::PauseSpans unserved_;             // of all buckets here
  runtime::Timer tenant_timer_;
  runtime::Wakeup idle_;
  bool is_send_posted_ = false;
  bool is_stopping_ = false;
  runtime::TaskGroup tasks_;
};

}  // namespace postrider::delivery
