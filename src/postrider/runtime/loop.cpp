#include "postrider/runtime/loop.hpp"

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::runtime {

namespace asio = boost::asio;

struct Loop::State {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::atomic<std::thread::id> thread{};
};

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;

void Loop::run() {
  state_->thread = std::this_thread::get_id();
  state_->io.restart();
  state_->io.run();
  state_->thread = std::thread::id();
}

void Loop::stop() {
  state_->io.stop();
}

void Loop::post(Job job) {
  asio::post(state_->io, std::move(job));
}

bool Loop::is_this_thread() const {
  return state_->thread == std::this_thread::get_id();
}

asio::io_context& Loop::io() {
  return state_->io;
}

struct Timer::State {
  explicit State(asio::io_context& io) : timer(io) {}
  asio::basic_waitable_timer<base::BootClock> timer;
  Job job;
  uint64_t setting = 0;  // distinguishes a wait that was replaced from the current one
};

Timer::Timer(Loop& loop) : state_(std::make_shared<State>(loop.io())) {}
Timer::~Timer() {
  cancel();
}

void Timer::call_at(SteadyTime when, Job job) {
  const uint64_t setting = ++state_->setting;
  state_->job = std::move(job);
  state_->timer.expires_at(when);
  state_->timer.async_wait([state = state_, setting](const boost::system::error_code& error) {
    if (error || state->setting != setting || !state->job) return;
    const Job due = std::exchange(state->job, Job());
    due();
  });
}

void Timer::cancel() {
  ++state_->setting;
  state_->job = Job();
  state_->timer.cancel();
}

bool Timer::is_set() const {
  return static_cast<bool>(state_->job);
}

void Wakeup::notify() {
  if (!waiting_) {
    notified_ = true;
    return;
  }
  resume();
}

void Wakeup::resume() {
  timer_.cancel();
  if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
}

bool Wakeup::Wait::await_ready() noexcept {
  return std::exchange(wakeup_.notified_, false);
}

void Wakeup::Wait::await_suspend(std::coroutine_handle<> waiting) {
  CHECK(!wakeup_.waiting_);
  wakeup_.waiting_ = waiting;
  wakeup_.timer_.call_at(until_, [wakeup = &wakeup_] { wakeup->resume(); });
}

}  // namespace postrider::runtime
