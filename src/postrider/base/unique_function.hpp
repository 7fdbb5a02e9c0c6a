// A move-only std::function (std::move_only_function is C++23).
#pragma once

#include <memory>
#include <utility>

namespace postrider::base {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, UniqueFunction>)
  UniqueFunction(F&& f) : callable_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(f))) {}

  explicit operator bool() const { return callable_ != nullptr; }
  R operator()(Args... args) const { return callable_->call(std::forward<Args>(args)...); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Holder final : Callable {
    explicit Holder(F f) : held(std::move(f)) {}
    R call(Args... args) override { return held(std::forward<Args>(args)...); }
    F held;
  };
  std::unique_ptr<Callable> callable_;
};

}  // namespace postrider::base
