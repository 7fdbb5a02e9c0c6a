// Publishes the committed rows of one outbox. Any number of relays may run for it: the one whose session
// holds the lease works, the others wait and take over.
//
// NOTIFY wakes it when it sleeps, and it polls as a safety net. Once a minute it scans all rows, so that
// rows that were locked, and those of a restored server, are found as well.
// Used on one loop.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "postrider/outbox/drainer.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/pg/listener.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::outbox {

struct RelayOptions {
  std::string name = "local";  // of the outbox
  std::string owner = {};      // name of the relay, for people
  std::chrono::milliseconds poll{500};
  std::chrono::milliseconds lease{10'000};      // a relay whose beat stands still for this long is superseded
  std::chrono::milliseconds full_pass{60'000};  // how often all rows are scanned
  bool may_be_notified = true;                  // false: publish() never sends a NOTIFY
  int data_bytes_max = 256 << 10;               // what publish() accepts
  pg::LinkOptions listen = {};                  // a session of its own, not through a pooler

  void validate() const;
};

// The lease that a relay with these options works under, in the outbox's database.
pg::SessionLeaseOptions relay_lease(const RelayOptions& options);

class Relay : public runtime::Service {
 public:
  // The link's session holds the lease: it must not go through a pooler, and the drainer works on it, fenced
  // by the lease.
  Relay(runtime::Loop& loop, pg::Link& link, pg::SessionLease& lease, OutboxDrainer& drainer,
        OutboxMetrics series, RelayOptions options);
  ~Relay() override;

  // For tests: takes the lease if it is free, then publishes all rows that are there. False: another relay
  // has it. Throws pg::Error.
  runtime::Task<bool> relay_now();
  bool is_active() const;
  bool is_asleep() const;

 private:
  // Everything that is there, then a sleep until there may be more; or a wait for the lease.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> finish() override;  // releases the lease, so that another relay can take it at once

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::outbox
