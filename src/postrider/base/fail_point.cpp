#include "postrider/base/fail_point.hpp"

#ifdef POSTRIDER_FAIL_POINTS

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace postrider::base {

namespace {

struct Plan {
  std::string name;
  long nth = 0;
};

Plan read_plan() {
  const char* text = std::getenv("POSTRIDER_FAIL_POINT");
  if (text == nullptr) return {};
  const std::string_view plan = text;
  const auto colon = plan.rfind(':');
  if (colon == std::string_view::npos) return {std::string(plan), 1};
  return {std::string(plan.substr(0, colon)), std::atol(text + colon + 1)};
}

void log_first_time(const char* fail_point) {
  static const char* path = std::getenv("POSTRIDER_FAIL_POINT_LOG");
  if (path == nullptr) return;
  static std::set<std::string> seen;
  if (!seen.insert(fail_point).second) return;
  if (FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", fail_point);
    std::fclose(file);
  }
}

}  // namespace

void reach(const char* fail_point) {
  static std::mutex mutex;
  static const Plan plan = read_plan();
  static long times = 0;
  const std::lock_guard lock(mutex);
  log_first_time(fail_point);
  if (plan.name == fail_point && ++times == plan.nth) std::raise(SIGKILL);
}

}  // namespace postrider::base

#endif
