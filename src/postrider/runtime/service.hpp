// The base of every recurring service of a node: one pass after another on one loop, until it is stopped.
//
//   class Follower : public runtime::Service {
//    public:
//     Follower(runtime::Loop& loop, Options options) : Service(loop), options_(runtime::validated(options))
//     {}
//
//    private:
//     runtime::Task<runtime::SteadyTime> pass(runtime::SteadyTime now) override;
//   };
//
// Everything is called on the loop's thread.
#pragma once

#include <coroutine>
#include <vector>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::runtime {

class Service {
 public:
  explicit Service(Loop& loop) : loop_(loop), wakeup_(loop) {}
  virtual ~Service();  // not running: stop() was awaited, or start() never called
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Does nothing if it runs already. A stopped service can be started again, one that is stopping cannot.
  void start();
  // The next pass starts now, or right after the current one.
  void wake() { wakeup_.notify(); }
  // Starts no more passes, waits for the current one and for spawned tasks, then runs finish(). Overlapping
  // calls wait for the same end; on a stopped service it does nothing.
  Task<void> stop();
  bool is_running() const { return phase_ == Phase::running; }

  // One pass, for tests. Returns when the next one is due.
  Task<SteadyTime> run_once(SteadyTime now = base::BootClock::now()) { return pass(now); }

 protected:
  // Returns when the next pass is due. An exception ends the process, so a pass handles the errors it
  // expects.
  virtual Task<SteadyTime> pass(SteadyTime now) = 0;
  virtual SteadyTime first_pass_at(SteadyTime now) const { return now; }
  // Called by stop() before it waits: ends what would delay the current pass.
  virtual Task<void> interrupt() { co_return; }
  // The last work of stop(), also if the service was never started.
  virtual Task<void> finish() { co_return; }

  Loop& loop() { return loop_; }
  // stop() was called, and start() was not called since.
  bool is_stopping() const { return phase_ == Phase::stopping || phase_ == Phase::stopped; }
  // Within a pass: until that time, wake() or stop().
  Wakeup::Wait rest_until(SteadyTime until) { return wakeup_.wait_until(until); }
  Wakeup::Wait rest_for(std::chrono::nanoseconds delay) { return wakeup_.wait_for(delay); }
  // A task in addition to the passes. It must end soon after stop() is called.
  void spawn(Task<void> task) { tasks_.spawn(std::move(task)); }
  size_t spawned() const { return tasks_.running(); }

 private:
  enum class Phase { idle, running, stopping, stopped };
  struct Stopped {
    Service& service;
    bool await_ready() const noexcept { return service.phase_ != Phase::stopping; }
    void await_suspend(std::coroutine_handle<> waiting) { service.stop_waiters_.push_back(waiting); }
    void await_resume() noexcept {}
  };
  Task<void> run();

  Loop& loop_;
  Wakeup wakeup_;
  Phase phase_ = Phase::idle;
  std::vector<std::coroutine_handle<>> stop_waiters_;  // calls of stop() after the first one
  TaskGroup runner_, tasks_;
};

// Passes on the options of a service after their validate(), which CHECKs: users' settings are validated
// where they are read, so a bad value here is a bug.
template <class Options>
Options validated(Options options) {
  options.validate();
  return options;
}

}  // namespace postrider::runtime
