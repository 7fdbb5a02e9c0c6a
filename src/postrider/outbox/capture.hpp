// Change data capture: reads what emit() wrote into the log, from a replication slot, in the order of
// commits. Beside the relay of the same outbox, whose lease it works under, and which moves the rows: emit()
// writes rows, too, whenever this does not read. Used on one loop.
//
// The slot makes the server keep its log. When that becomes more than the outbox's limit, emit() is switched
// to rows, what is in the slot is made rows, and the slot is dropped: nothing is lost and the disk does not
// fill up.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "postrider/base/unique_function.hpp"
#include "postrider/outbox/capture_publisher.hpp"
#include "postrider/runtime/service.hpp"

namespace postrider::outbox {

struct CaptureOptions {
  std::string name = "local";                 // of the outbox
  pg::ConnectOptions connect = {};            // to the outbox's database, not through a pooler
  std::chrono::milliseconds look{1'000};      // how often the slot is checked
  std::chrono::seconds mark{30};              // how long emit() assumes that the slot has a reader
  std::chrono::milliseconds rest{60'000};     // after falling back, before a new slot is made
  std::chrono::milliseconds rejected{5'000};  // before the next try, when the server does not allow it
  int rows_max = 500;
  int64_t bytes_max = 4 << 20;

  void validate() const;
};

CaptureOptions capture_options(const std::string& name, const std::string& url, const DrainLimits& limits);

struct CaptureTools {
  runtime::Loop& loop;
  pg::Link& link;  // whose session holds the lease, in the outbox's database
  pg::Link& home;  // to postrider's own database, for operational events
  const pg::SessionLease& lease;
  CapturePublisher& capture_publisher;
  CaptureMetrics series;
};

class Capture : public runtime::Service {
 public:
  // `is_leader`: this node's relay holds the lease, in the link's present session.
  Capture(CaptureTools tools, CaptureOptions options, base::UniqueFunction<bool()> is_leader);
  ~Capture() override;

 private:
  // Checks once and acts; reading ends when the slot has nothing more for now.
  runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
  runtime::Task<void> interrupt() override;
  runtime::Task<void> finish() override;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace postrider::outbox
