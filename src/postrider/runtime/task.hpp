// Task<T>: a lazy coroutine. It starts when awaited and resumes its awaiter when done; exceptions travel with
// it. A task runs on one loop and is awaited on the same thread.
//
// g++ 12.2 miscompiles aggregate temporaries and capturing lambdas inside an expression with co_await:
// such an expression names existing variables only (tools/check_coro.py enforces it).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "postrider/base/check.hpp"

namespace postrider::runtime {

template <class T = void>
class Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> awaiter = std::noop_coroutine();
  std::exception_ptr error;

  std::suspend_always initial_suspend() noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      return done.promise().awaiter;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (error) std::rethrow_exception(error);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
    handle_.promise().awaiter = awaiter;
    return handle_;
  }
  T await_resume() { return handle_.promise().take(); }

 private:
  Handle handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace detail

// The bridge from a callback to a task: set() once, co_await once, in either order, on one thread.
// The awaiting coroutine resumes inside set(); the OneShot must live until then.
template <class T>
class OneShot {
 public:
  OneShot() = default;
  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;

  void set(T value) {
    CHECK(!value_);
    value_.emplace(std::move(value));
    if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
  }
  bool is_set() const { return value_.has_value(); }

  bool await_ready() const noexcept { return value_.has_value(); }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  T await_resume() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  std::coroutine_handle<> waiting_;
};

// Owns running tasks, so that nothing is detached: the code that spawns into a group joins it. A task that
// throws is a bug (services catch at their pass), so the process stops. One loop only; the group outlives its
// tasks.
class TaskGroup {
 public:
  TaskGroup() = default;
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup() { CHECK(running_ == 0); }

  // Starts the task at once, on this thread.
  void spawn(Task<void> task) {
    ++running_;
    run(std::move(task));
  }
  size_t running() const { return running_; }

  struct Joined {
    TaskGroup& group;
    bool await_ready() const noexcept { return group.running_ == 0; }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { group.joining_ = waiting; }
    void await_resume() noexcept {}
  };
  // co_await group.join(): until no task runs. One joiner at a time.
  Joined join() { return Joined{*this}; }

 private:
  struct Detached {
    struct promise_type {
      Detached get_return_object() { return {}; }
      std::suspend_never initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }
    };
  };
  Detached run(Task<void> task) {
    co_await task;
    if (--running_ == 0)
      if (auto joining = std::exchange(joining_, {})) joining.resume();
  }

  size_t running_ = 0;
  std::coroutine_handle<> joining_;
};

}  // namespace postrider::runtime
