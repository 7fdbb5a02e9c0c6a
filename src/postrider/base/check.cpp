#include "postrider/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace postrider::base {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "postrider: bug: CHECK(%s) failed at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace postrider::base
