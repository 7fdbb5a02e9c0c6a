// Runs a task on a loop that another thread runs, while this thread waits for its end.
#pragma once

#include <exception>
#include <future>
#include <memory>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::runtime {

namespace detail {

template <class MakeTask>
Task<void> run_and_tell(MakeTask make_task, std::shared_ptr<std::promise<std::exception_ptr>> done) {
  std::exception_ptr error;
  try {
    auto task = make_task();
    co_await task;
  } catch (...) {
    error = std::current_exception();
  }
  done->set_value(error);
}

}  // namespace detail

// `make_task` returns a Task<void> and is called on the loop. Rethrows what the task threw. The group belongs
// to the loop and outlives the task.
template <class MakeTask>
void run_on(Loop& loop, TaskGroup& tasks, MakeTask make_task) {
  const auto done = std::make_shared<std::promise<std::exception_ptr>>();
  auto result = done->get_future();
  loop.post([&tasks, make_task, done] { tasks.spawn(detail::run_and_tell(make_task, done)); });
  if (const auto error = result.get()) std::rethrow_exception(error);
}

}  // namespace postrider::runtime
