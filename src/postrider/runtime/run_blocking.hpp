// Runs one task to completion on a loop that no thread runs yet, for commands and for the start of a node
// before its own loops exist.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::runtime {

template <class T>
struct Ended {
  std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> value;
  std::exception_ptr error;
};

template <class T>
Task<void> record_end(Loop& loop, Task<T>& task, Ended<T>& ended) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
    } else {
      T value = co_await task;
      ended.value.emplace(std::move(value));
    }
  } catch (...) {
    ended.error = std::current_exception();
  }
  loop.stop();
}

// Returns the task's value or throws its exception.
template <class T>
T run_blocking(Loop& loop, Task<T> task) {
  Ended<T> ended;
  TaskGroup group;
  loop.post([&] { group.spawn(record_end(loop, task, ended)); });
  loop.run();
  if (ended.error) std::rethrow_exception(ended.error);
  if constexpr (!std::is_void_v<T>) return std::move(*ended.value);
}

}  // namespace postrider::runtime
