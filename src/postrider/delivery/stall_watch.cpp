#include "postrider/delivery/stall_watch.hpp"

#include <utility>

#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;
constexpr auto kStall = 1s;

}  // namespace

StallWatch::StallWatch(runtime::Loop& loop) : timer_(loop), last_look_(base::BootClock::now()) {
  timer_.call_after(kTick, [this] { tick(); });
}

void StallWatch::tick() {
  timer_.call_after(kTick, [this] { tick(); });
  look(base::BootClock::now());
}

void StallWatch::look(base::SteadyTime now) {
  const auto gap = now - std::exchange(last_look_, now);
  if (gap <= kStall) return;
  ++stalls_;
  woken_at_ = now;
  telemetry::log_warn("process_stalled").field("seconds", std::chrono::duration<double>(gap).count());
}

bool StallWatch::has_stalled_since(uint64_t stalls) {
  look(base::BootClock::now());
  return stalls != stalls_;
}

}  // namespace postrider::delivery
