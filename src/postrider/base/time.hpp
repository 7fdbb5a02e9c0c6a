// Two clocks, two types. Timestamp is wall time as Postgres keeps it (microseconds, UTC) and is only for what
// is stored or shown; SteadyTime is for measuring and for leases: CLOCK_BOOTTIME, which also runs while
// suspended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::base {

using Microseconds = std::chrono::microseconds;
using Timestamp = std::chrono::time_point<std::chrono::system_clock, Microseconds>;

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};
using SteadyTime = BootClock::time_point;

Timestamp wall_now();

// "2026-04-08T10:15:30Z", with microseconds only when there are any. Times outside of the years 1 to 9999,
// such as infinity, become the first or the last of them.
std::string to_rfc3339(Timestamp t);
// Accepts what RFC 3339 allows: any offset, fraction cut to microseconds. Nothing else.
std::optional<Timestamp> parse_rfc3339(std::string_view text);

}  // namespace postrider::base
