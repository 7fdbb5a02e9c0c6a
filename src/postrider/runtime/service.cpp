#include "postrider/runtime/service.hpp"

#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::runtime {

Service::~Service() {
  CHECK(phase_ == Phase::idle || phase_ == Phase::stopped);
}

void Service::start() {
  CHECK(phase_ != Phase::stopping);
  if (phase_ == Phase::running) return;
  phase_ = Phase::running;
  runner_.spawn(run());
}

Task<void> Service::run() {
  SteadyTime next = first_pass_at(base::BootClock::now());
  while (phase_ == Phase::running) {
    const SteadyTime now = base::BootClock::now();
    if (now < next) co_await wakeup_.wait_until(next);
    if (phase_ != Phase::running) break;
    next = co_await pass(base::BootClock::now());
  }
}

Task<void> Service::stop() {
  if (phase_ == Phase::stopped) co_return;
  if (phase_ == Phase::stopping) {
    Stopped stopped{*this};
    co_await stopped;
    co_return;
  }
  phase_ = Phase::stopping;
  wakeup_.notify();
  co_await interrupt();
  co_await runner_.join();
  co_await tasks_.join();
  co_await finish();
  phase_ = Phase::stopped;
  for (const auto waiting : std::exchange(stop_waiters_, {})) loop_.post([waiting] { waiting.resume(); });
}

}  // namespace postrider::runtime
