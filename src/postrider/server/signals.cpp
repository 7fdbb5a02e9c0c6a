#include "postrider/server/signals.hpp"

#include <ctime>

#include "postrider/base/check.hpp"

namespace postrider::server {

StopSignals::StopSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::sigemptyset(&stopping_);
  ::sigaddset(&stopping_, SIGTERM);
  ::sigaddset(&stopping_, SIGINT);
  CHECK(::pthread_sigmask(SIG_BLOCK, &stopping_, nullptr) == 0);
}

std::optional<StopSignal> StopSignals::wait_for(std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  siginfo_t info{};
  const int number = ::sigtimedwait(&stopping_, &info, &limit);
  if (number < 0) return std::nullopt;
  return StopSignal{.number = number, .sender = info.si_code == SI_USER ? info.si_pid : 0};
}

}  // namespace postrider::server
