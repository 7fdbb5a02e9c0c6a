#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::support {

namespace detail {

template <class T>
struct RunResult {
  std::optional<T> value;
  std::exception_ptr error;
};
template <>
struct RunResult<void> {
  std::exception_ptr error;
};

template <class T>
runtime::Task<void> record(runtime::Loop& loop, runtime::Task<T>& task, RunResult<T>& outcome) {
  try {
    if constexpr (std::is_void_v<T>)
      co_await task;
    else
      outcome.value.emplace(co_await task);
  } catch (...) {
    outcome.error = std::current_exception();
  }
  loop.stop();
}

}  // namespace detail

// Runs the loop on this thread until the task is done; returns its value or throws what it threw. A test that
// hangs is stopped after two minutes.
template <class T>
T run(runtime::Loop& loop, runtime::Task<T> task) {
  detail::RunResult<T> outcome;
  runtime::TaskGroup group;
  runtime::Timer hang(loop);
  hang.call_after(std::chrono::minutes(2), [] {
    std::fputs("the task does not end\n", stderr);
    std::abort();
  });
  loop.post([&] { group.spawn(detail::record(loop, task, outcome)); });
  loop.run();
  if (outcome.error) std::rethrow_exception(outcome.error);
  if constexpr (!std::is_void_v<T>) return std::move(*outcome.value);
}

}  // namespace postrider::support
