// Signals as values: blocked in every thread, taken by the main thread one at a time.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>

namespace postrider::server {

struct StopSignal {
  int number = 0;    // SIGTERM or SIGINT
  pid_t sender = 0;  // 0: the kernel, as for Ctrl-C
};

// Made before any other thread, so that all of them inherit the blocked signals. SIGPIPE is ignored
// permanently.
class StopSignals {
 public:
  StopSignals();
  // The next one, if it arrives in time.
  std::optional<StopSignal> wait_for(std::chrono::milliseconds timeout);

 private:
  sigset_t stopping_;
};

}  // namespace postrider::server
