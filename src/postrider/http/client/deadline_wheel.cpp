#include "postrider/http/client/deadline_wheel.hpp"

#include <algorithm>

namespace postrider::http {

void DeadlineWheel::set(Deadline& deadline, runtime::SteadyTime when) {
  // Nothing is waiting, so no slot is skipped. (While turning, deadlines may be waiting in ticks that began
  // since.)
  if (!timer_.is_set() && !is_turning_) turned_to_ = tick_of(base::BootClock::now());
  deadline.when_ = when;
  // The tick that contains `when` began before it, so use the next one, which is never early.
  const int64_t number = std::max(tick_of(when), turned_to_) + 1;
  deadline.clear_deadline();
  slot(number).push_back(deadline);
  if (!is_turning_ && (!timer_.is_set() || number < armed_for_)) arm();
}

// Sleeps until the next slot that is not empty, so that an idle client costs nothing.
void DeadlineWheel::arm() {
  armed_for_ = turned_to_ + 1;
  while (slot(armed_for_).empty() && armed_for_ - turned_to_ <= kSlots) ++armed_for_;
  if (armed_for_ - turned_to_ > kSlots) return;
  timer_.call_at(runtime::SteadyTime(kTick * armed_for_), [this] { turn(); });
}

void DeadlineWheel::turn() {
  const runtime::SteadyTime now = base::BootClock::now();
  const int64_t current = tick_of(now);
  Slot due;
  for (int64_t number = std::max(turned_to_ + 1, current - kSlots + 1); number <= current; ++number) {
    Slot& here = slot(number);
    for (auto next = here.begin(); next != here.end();) {
      Deadline& deadline = *next++;
      if (deadline.when_ <= now) due.splice(due.end(), here, here.iterator_to(deadline));
    }
  }
  turned_to_ = current;
  is_turning_ = true;
  // on_deadline may set, clear or destroy any deadline, also those that are still in `due`.
  while (!due.empty()) {
    Deadline& deadline = due.front();
    deadline.clear_deadline();
    deadline.on_deadline();
  }
  is_turning_ = false;
  arm();
}

}  // namespace postrider::http
