// Named places where a test may kill the process, compiled in only with POSTRIDER_FAIL_POINTS.
//
// POSTRIDER_FAIL_POINT="settle.before_commit:3" sends SIGKILL to itself the third time that place is reached;
// POSTRIDER_FAIL_POINT_LOG=<file> gets one line per place when it is reached for the first time, so that a
// test can prove that no name is dead. In a release build reach() is nothing.
#pragma once

namespace postrider::base {

#ifdef POSTRIDER_FAIL_POINTS
void reach(const char* fail_point);
#else
inline void reach(const char*) {}
#endif

}  // namespace postrider::base
