#include "postrider/server/core_dumps.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>

namespace postrider::server {
namespace {

bool is_silent_about_its_memory() {
  forbid_core_dumps();
  rlimit cores{1, 1};
  ::getrlimit(RLIMIT_CORE, &cores);
  return cores.rlim_cur == 0 && cores.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 0;
}

TEST(CoreDumps, TheProcessLeavesNoneAndItsMemoryCannotBeRead) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak sanitizer reads the memory of its own process";
#endif
  EXPECT_EXIT(std::exit(is_silent_about_its_memory() ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace postrider::server
