// Result<T, E>: a result that the caller must handle. Not for a unit of work that cannot continue: that
// throws.
#pragma once

#include <utility>
#include <variant>

#include "postrider/base/check.hpp"

namespace postrider::base {

template <class E>
struct Failure {
  E error;
};
template <class E>
Failure(E) -> Failure<E>;

template <class T, class E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  template <class F>
  Result(Failure<F> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  const E& error() const {
    CHECK(!ok());
    return std::get<1>(state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> state_;
};

}  // namespace postrider::base
