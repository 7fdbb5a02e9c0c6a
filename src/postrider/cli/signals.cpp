#include "postrider/cli/signals.hpp"

#include <ctime>

#include "postrider/base/check.hpp"

namespace postrider::cli {

StopSignals::StopSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::sigemptyset(&stopping_);
  ::sigaddset(&stopping_, SIGTERM);
  ::sigaddset(&stopping_, SIGINT);
  CHECK(::pthread_sigmask(SIG_BLOCK, &stopping_, nullptr) == 0);
}

std::optional<int> StopSignals::wait_for(std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  const int signal = ::sigtimedwait(&stopping_, nullptr, &limit);
  if (signal < 0) return std::nullopt;
  return signal;
}

}  // namespace postrider::cli
