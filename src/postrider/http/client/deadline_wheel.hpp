// Deadlines of thousands of exchanges for the price of one timer: setting and clearing is a list operation.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "postrider/http/client/intrusive_list.hpp"
#include "postrider/runtime/loop.hpp"

namespace postrider::http {

// Fires once, never early, at most about one tick (10 ms) late. Destroying or clearing it is always safe.
class Deadline : public ListHook<class DeadlineWheel> {
 public:
  virtual void on_deadline() = 0;
  void clear_deadline() { ListHook<DeadlineWheel>::unlink(); }

 protected:
  Deadline() = default;
  ~Deadline() = default;

 private:
  friend class DeadlineWheel;
  runtime::SteadyTime when_{};
};

class DeadlineWheel {
 public:
  explicit DeadlineWheel(runtime::Loop& loop) : timer_(loop) {}

  // Replaces the time set before, if any.
  void set(Deadline& deadline, runtime::SteadyTime when);

 private:
  using Slot = IntrusiveList<Deadline, DeadlineWheel>;
  static constexpr std::chrono::milliseconds kTick{10};
  static constexpr int64_t kSlots = 1024;

  static int64_t tick_of(runtime::SteadyTime when) { return when.time_since_epoch() / kTick; }
  Slot& slot(int64_t tick_number) { return slots_[static_cast<size_t>(tick_number % kSlots)]; }
  void arm();
  void turn();

  runtime::Timer timer_;
  int64_t armed_for_ = 0;    // the tick the timer waits for, when it is set
  int64_t turned_to_ = 0;    // every slot up to this tick has been handled
  bool is_turning_ = false;  // then turn() sets the timer at its end
  std::array<Slot, kSlots> slots_;
};

}  // namespace postrider::http
