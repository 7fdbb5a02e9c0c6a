#include "postrider/delivery/attempt/breaker.hpp"

#include <algorithm>

#include "postrider/base/check.hpp"

namespace postrider::delivery {

std::string_view Breaker::label() const {
  switch (state_) {
    case State::closed:
      return "closed";
    case State::ramping:
      return "ramping";
    case State::open:
      return "open";
  }
  return "";
}

int Breaker::allowed_in_flight(base::SteadyTime now, int max_in_flight) const {
  switch (state_) {
    case State::closed:
      return max_in_flight;
    case State::ramping:
      return std::min(ramp_allowed_, max_in_flight);
    case State::open:
      return is_probe_due(now) ? std::min(1, max_in_flight) : 0;
  }
  return 0;
}

bool Breaker::is_probe_due(base::SteadyTime now) const {
  return state_ == State::open && !is_probing_ && now >= next_probe_at_;
}

void Breaker::start_probe() {
  CHECK(state_ == State::open && !is_probing_);
  is_probing_ = true;
}

void Breaker::abandon_probe() {
  is_probing_ = false;
}

void Breaker::on_success(int max_in_flight) {
  failures_in_row_ = 0;
  if (state_ == State::open) {
    start_ramp();
  } else if (state_ == State::ramping && ++ramp_allowed_ >= max_in_flight) {
    state_ = State::closed;
    probe_interval_ = std::chrono::milliseconds(0);
  }
}

void Breaker::on_rejection() {
  failures_in_row_ = 0;
  if (state_ == State::open) start_ramp();
}

void Breaker::on_transient_failure(const Failure& failure) {
  CHECK(failure.jitter >= 0 && failure.jitter < 1);
  if (state_ == State::open) {
    // Attempts that were in flight when the breaker opened show nothing new.
    if (failure.was_probe) schedule_probe(failure);
    return;
  }
  if (state_ == State::ramping) ramp_allowed_ = std::max(1, ramp_allowed_ / 2);
  if (++failures_in_row_ >= policy_.failures_to_open) open(failure);
}

void Breaker::open(const Failure& failure) {
  state_ = State::open;
  schedule_probe(failure);
}

void Breaker::schedule_probe(const Failure& failure) {
  is_probing_ = false;
  probe_interval_ = std::clamp(probe_interval_ * 2, policy_.probe_interval_min, policy_.probe_interval_max);
  const double stretch = 1 + policy_.probe_jitter * failure.jitter;
  next_probe_at_ =
      failure.now + std::chrono::duration_cast<std::chrono::nanoseconds>(probe_interval_ * stretch);
}

void Breaker::start_ramp() {
  state_ = State::ramping;
  ramp_allowed_ = 1;
  failures_in_row_ = 0;
  is_probing_ = false;
}

void Breaker::reset() {
  *this = Breaker(policy_);
}

}  // namespace postrider::delivery
