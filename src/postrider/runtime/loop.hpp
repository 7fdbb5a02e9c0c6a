// One event loop, run by one thread. Everything built on a loop is used on its thread only, except post() and
// stop(). Asio stays behind this header: a translation unit that needs sockets includes <boost/asio.hpp> and
// calls io().
#pragma once

#include <chrono>
#include <coroutine>
#include <memory>

#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"

namespace boost::asio {
class io_context;
}

namespace postrider::runtime {

using base::SteadyTime;
using Job = base::UniqueFunction<void()>;

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run();          // until stop(); the calling thread becomes the loop's thread
  void stop();         // any thread
  void post(Job job);  // any thread; jobs run in order
  bool is_this_thread() const;
  boost::asio::io_context& io();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// co_await Yield{loop}: continues in a later turn of the loop, after the jobs that are already queued.
struct Yield {
  Loop& loop;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    loop.post([waiting] { waiting.resume(); });
  }
  void await_resume() noexcept {}
};

// For long work in small steps: `co_await pause` between two steps yields once the work has held the loop for
// too long; otherwise it only reads the clock.
class Pause {
 public:
  static constexpr std::chrono::microseconds kTurnMax{200};
  explicit Pause(Loop& loop, std::chrono::nanoseconds turn_max = kTurnMax)
      : loop_(loop), turn_max_(turn_max), began_(base::BootClock::now()) {}

  bool await_ready() const { return base::BootClock::now() - began_ < turn_max_; }
  void await_suspend(std::coroutine_handle<> waiting) {
    loop_.post([this, waiting] {
      began_ = base::BootClock::now();
      waiting.resume();
    });
  }
  void await_resume() noexcept {}

 private:
  Loop& loop_;
  std::chrono::nanoseconds turn_max_;
  SteadyTime began_;
};

// Calls back once at a time on CLOCK_BOOTTIME (so a suspended or stopped process sees its timers as overdue
// when it wakes). Setting it again replaces the old time; a destroyed or canceled timer never calls.
class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void call_at(SteadyTime when, Job job);
  void call_after(std::chrono::nanoseconds delay, Job job) {
    call_at(base::BootClock::now() + delay, std::move(job));
  }
  void cancel();
  bool is_set() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the pending wait, which may outlive the timer by one turn
};

// A service sleeps on this: co_await wakeup.wait_until(t) returns at t or at the next notify(), whichever
// comes first. A notify() without a waiter is remembered (once; they are not counted).
class Wakeup {
 public:
  explicit Wakeup(Loop& loop) : timer_(loop) {}

  void notify();
  class Wait {
   public:
    bool await_ready() noexcept;
    void await_suspend(std::coroutine_handle<> waiting);
    void await_resume() noexcept {}

   private:
    friend class Wakeup;
    Wait(Wakeup& wakeup, SteadyTime until) : wakeup_(wakeup), until_(until) {}
    Wakeup& wakeup_;
    SteadyTime until_;
  };
  Wait wait_until(SteadyTime until) { return Wait(*this, until); }
  Wait wait_for(std::chrono::nanoseconds delay) { return Wait(*this, base::BootClock::now() + delay); }

 private:
  void resume();
  Timer timer_;
  std::coroutine_handle<> waiting_;
  bool notified_ = false;
};

}  // namespace postrider::runtime
