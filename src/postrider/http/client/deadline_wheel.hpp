// Deadlines of thousands of exchanges for the price of one timer: setting and clearing is a list operation.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "postrider/http/client/link.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::http {

// Fires once, never early, at most about one tick (10 ms) late. Destroying or clearing it is always safe.
class Deadline {
 public:
  virtual void on_deadline() = 0;
  void clear_deadline() { position_.unlink(); }

 protected:
  Deadline() { position_.deadline = this; }
  ~Deadline() = default;

 private:
  friend class DeadlineWheel;
  struct Position : Link {
    Deadline* deadline = nullptr;
  } position_;
  runtime::SteadyTime when_{};
};

class DeadlineWheel {
 public:
  explicit DeadlineWheel(runtime::Loop& loop) : timer_(loop) {}

  // Replaces the time set before, if any.
  void set(Deadline& deadline, runtime::SteadyTime when);

 private:
  static constexpr std::chrono::milliseconds tick{10};
  static constexpr int64_t slot_count = 1024;

  static int64_t tick_of(runtime::SteadyTime when) { return when.time_since_epoch() / tick; }
  Link& slot(int64_t tick_number) { return slots_[static_cast<size_t>(tick_number % slot_count)]; }
  void arm();
  void turn();

  runtime::Timer timer_;
  int64_t armed_for_ = 0;    // the tick the timer waits for, when it is set
  int64_t turned_to_ = 0;    // every slot up to this tick has been looked at
  bool is_turning_ = false;  // then turn() sets the timer at its end
  std::array<Link, slot_count> slots_;
};

}  // namespace postrider::http
