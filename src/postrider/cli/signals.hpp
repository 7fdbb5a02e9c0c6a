// Signals as values: blocked in every thread, taken by the main thread one at a time.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

namespace postrider::cli {

// Made before any other thread, so that all of them inherit the blocked signals. SIGPIPE is ignored for good.
class StopSignals {
 public:
  StopSignals();
  // SIGTERM or SIGINT, if one arrives in time.
  std::optional<int> wait_for(std::chrono::milliseconds timeout);

 private:
  sigset_t stopping_;
};

}  // namespace postrider::cli
