// The breaker of one lane: stops hammering an endpoint that is down, and lets the backlog out gently when it
// is back. Pure: the clock and the jitter in [0, 1) come in as arguments.
//
//   closed ──(a run of transient failures)──► open ──(any success)──► closed, ramping ──► closed
//                                              │ ▲
//                                              └─┘ one probe at a growing interval
#pragma once

#include <chrono>
#include <string_view>

#include "postrider/base/time.hpp"

namespace postrider::delivery {

struct BreakerPolicy {
  int failures_to_open = 5;
  std::chrono::milliseconds probe_interval_min{5'000};
  std::chrono::milliseconds probe_interval_max{300'000};
  double probe_jitter = 0.2;  // up to this share is added to an interval
};

class Breaker {
 public:
  explicit Breaker(BreakerPolicy policy = {}) : policy_(policy) {}

  bool is_open() const { return state_ == State::open; }
  std::string_view label() const;  // "closed", "ramping", "open"

  // The number of attempts that may be in flight at once: `max_in_flight` when closed. On a ramp 1 and one
  // more for each success, so that it doubles with every round trip. When open, 1 if a probe is due and no
  // other probe is in flight, otherwise 0.
  int allowed_in_flight(base::SteadyTime now, int max_in_flight) const;

  // An attempt started while the breaker is open is a probe: call start_probe(), and pass was_probe
  // with its result. A failed probe uses up no attempt.
  bool is_probe_due(base::SteadyTime now) const;
  base::SteadyTime next_probe_at() const { return next_probe_at_; }  // meaningful while open
  void start_probe();
  void abandon_probe();  // it was never sent, or its result was discarded

  void on_success(int max_in_flight);  // a ramp is over once it allows that many
  // The endpoint rejected this delivery (4xx): it is up, so the run of failures ends and an open breaker
  // closes; a ramp does not grow.
  void on_rejection();
  struct Failure {
    base::SteadyTime now{};
    double jitter = 0;
    bool was_probe = false;
  };
  void on_transient_failure(const Failure& failure);

  void start_ramp();  // after a takeover: another node may still have attempts in flight
  void reset();       // the URL changed, or the endpoint was resumed

 private:
  enum class State { closed, ramping, open };
  void open(const Failure& failure);
  void schedule_probe(const Failure& failure);

  BreakerPolicy policy_;
  State state_ = State::closed;
  int failures_in_row_ = 0;
  int ramp_allowed_ = 1;
  bool is_probing_ = false;
  std::chrono::milliseconds probe_interval_{0};  // 0: never opened since it was last fully closed
  base::SteadyTime next_probe_at_{};
};

}  // namespace postrider::delivery
