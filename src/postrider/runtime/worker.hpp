// A thread for work that would hold a loop up, such as hashing a large body.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <thread>
#include <utility>

#include "postrider/runtime/loop.hpp"

namespace postrider::runtime {

// Runs jobs one at a time, in order. Outlives the loops that wait for it.
class Worker {
 public:
  Worker() : thread_([this] { loop_.run(); }) {}
  // Runs the jobs that are waiting, then ends the thread.
  ~Worker() {
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Any thread.
  void post(Job job) {
    ++waiting_;
    loop_.post([this, waited = std::move(job)] {
      --waiting_;
      waited();
    });
  }
  size_t waiting() const { return waiting_; }  // jobs that have not begun

 private:
  Loop loop_;
  std::atomic<size_t> waiting_ = 0;
  std::thread thread_;
};

// `OnWorker work(worker, loop, job); co_await work;` runs the job on the worker's thread and resumes on the
// loop. Rethrows what the job threw. The job may refer to the coroutine's variables.
class OnWorker {
 public:
  OnWorker(Worker& worker, Loop& loop, Job job) : worker_(worker), loop_(loop), job_(std::move(job)) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    worker_.post([this, waiting] {
      try {
        job_();
      } catch (...) {
        error_ = std::current_exception();
      }
      loop_.post([waiting] { waiting.resume(); });
    });
  }
  void await_resume() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Worker& worker_;
  Loop& loop_;
  Job job_;
  std::exception_ptr error_;
};

}  // namespace postrider::runtime
