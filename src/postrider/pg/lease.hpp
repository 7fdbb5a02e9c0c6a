// A lease that one session at a time holds: the row `name` of session_lease in the link's database. It ends
// with the session. A holder whose session is alive but whose heartbeat has stopped, by the observer's own
// clock, is superseded: its session is terminated if that is allowed, and its writes fail in any case,
// because each of its transactions is fenced by the lease's epoch. Used on one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "postrider/pg/link.hpp"

namespace postrider::pg {

struct SessionLeaseOptions {
  std::string name;
  std::string owner = {};                   // for people
  std::string of = {};                      // the outbox, for the log
  std::chrono::milliseconds stall{10'000};  // a holder without a heartbeat for this long is superseded
};

class SessionLease {
 public:
  // The link is a session of its own, not one of a transaction pooler.
  SessionLease(Link& link, SessionLeaseOptions options);

  // Takes the lease if it is free; keeps it alive if it is held. Call it more often than every third of
  // `stall`. False: another session has it. Throws Error.
  runtime::Task<bool> hold();
  // Lets another session take it at once. Never throws: a lease that cannot be released ends with the
  // session.
  runtime::Task<void> release();
  std::chrono::milliseconds beat_interval() const { return options_.stall / 3; }
  bool is_held() const;  // by the link's current session, as far as this process knows

  // Makes the batch, and the transaction it is part of, fail unless the lease is held when they commit.
  void fence(Batch& batch) const;
  // The error of a fenced batch whose lease another session has taken.
  static bool is_loss(const Error& error);
  // Forgets the lease, after such an error.
  void lose();

 private:
  runtime::Task<void> beat(base::SteadyTime now);
  runtime::Task<void> check_holder(base::SteadyTime now);
  runtime::Task<void> supersede(int pid, std::string role);

  Link& link_;
  SessionLeaseOptions options_;
  int64_t epoch_ = 0;  // 0: not held
  uint64_t connection_ = 0;
  base::SteadyTime beat_at_{};

  // The holder, as seen while waiting.
  int64_t seen_epoch_ = -1, seen_beat_ = -1;
  base::SteadyTime seen_at_{};
  int64_t stalled_epoch_ = -1;
};

// Renews a lease while its holder works on the same link, however long that takes. For work that notices when
// its session ends.
class LeaseRenewer {
 public:
  LeaseRenewer(runtime::Loop& loop, SessionLease& lease) : lease_(lease), wakeup_(loop) {}

  // Takes the lease. False: another session has it, and there is nothing to stop. Throws Error.
  runtime::Task<bool> start();
  runtime::Task<void> stop();  // and releases it

 private:
  runtime::Task<void> run();

  SessionLease& lease_;
  runtime::Wakeup wakeup_;
  runtime::TaskGroup tasks_;
  bool is_stopping_ = false;
};

}  // namespace postrider::pg
