// Moves the committed rows of one outbox. Any number of relays may run for it: the one whose session holds
// the lease works, the others wait and take over.
//
// It is woken by NOTIFY when it sleeps and polls as a safety net; once a minute it looks at everything, so
// that rows which somebody had locked, and those of a server that was restored, are found, too. Used on one
// loop.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "postrider/outbox/mover.hpp"
#include "postrider/pg/lease.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/pg/listener.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::outbox {

struct RelayOptions {
  std::string name = "local";  // of the outbox
  std::string owner = {};      // who relays, for people
  std::chrono::milliseconds poll{500};
  std::chrono::milliseconds lease{10'000};      // a relay whose beat stands still for this long is superseded
  std::chrono::milliseconds full_pass{60'000};  // how often everything is looked at
  bool may_be_notified = true;                  // false: publish() never sends a NOTIFY
  int data_bytes_max = 256 << 10;               // what publish() accepts
  pg::LinkOptions listen = {};                  // a session of its own, not through a pooler
};

// The lease that a relay with these options works under, in the outbox's database.
pg::LeaseOptions relay_lease(const RelayOptions& options);

class Relay {
 public:
  // The link's session holds the lease: it must not go through a pooler, and the mover works on it, fenced by
  // the lease.
  Relay(runtime::Loop& loop, pg::Link& link, pg::Lease& lease, Mover& mover, telemetry::OutboxSeries series,
        RelayOptions options);
  ~Relay();  // stop() was awaited, or start() never called
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void start();
  runtime::Task<void> stop();  // gives the lease up, so that another can take it at once

  // For tests: takes the lease if it is free, then moves everything that is there. False: another has it.
  runtime::Task<bool> run_once();
  bool is_active() const;
  bool is_asleep() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::outbox
