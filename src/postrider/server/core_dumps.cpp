#include "postrider/server/core_dumps.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace postrider::server {

void forbid_core_dumps() {
  // Neither can fail: the limit is only lowered.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__)  // the leak sanitizer reads the memory of its own process
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
}

}  // namespace postrider::server
