// CHECK: an assertion that also holds in release. A failed CHECK is a bug in postrider, never bad input.
#pragma once

namespace postrider::base {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace postrider::base

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::postrider::base::check_failed(#condition, __FILE__, __LINE__))
