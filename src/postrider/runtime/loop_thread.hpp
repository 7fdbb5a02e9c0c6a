// A loop and the thread that runs it. Declare it before everything that uses the loop, so that the loop
// outlives it.
#pragma once

#include <thread>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/run_on.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::runtime {

class LoopThread {
 public:
  LoopThread() = default;
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;
  ~LoopThread() { CHECK(!thread_.joinable()); }

  Loop loop;

  // Jobs that were posted earlier run first.
  void start() {
    thread_ = std::thread([this] { loop.run(); });
  }
  bool is_running() const { return thread_.joinable(); }

  // These two are called by another thread while the loop runs, and block. run() rethrows what the task
  // threw.
  template <class MakeTask>
  void run(MakeTask make_task) {
    run_on(loop, tasks_, std::move(make_task));
  }
  // Everything on the loop must have ended.
  void stop() {
    loop.stop();
    thread_.join();
  }

  // Called on the loop: a task that ends before stop().
  void spawn(Task<void> task) { tasks_.spawn(std::move(task)); }

 private:
  TaskGroup tasks_;
  std::thread thread_;
};

}  // namespace postrider::runtime
