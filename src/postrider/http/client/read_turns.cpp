#include "postrider/http/client/read_turns.hpp"

namespace postrider::http {

void ReadTurns::join_line(Place& place) {
  place.leave_line();
  line_.push_back(place);
  arm();
}

// A timer instead of a posted job: it fires after the loop has polled its descriptors again.
void ReadTurns::arm() {
  if (!timer_.is_set()) timer_.call_at(base::BootClock::now(), [this] { run(); });
}

void ReadTurns::run() {
  spent_ = 0;
  IntrusiveList<Place, ReadTurns> due;  // those that join from here on belong to the turn after this one
  due.splice(due.end(), line_);
  while (!due.empty() && !is_used_up()) {
    Place& place = due.front();
    place.leave_line();
    place.on_turn();
  }
  line_.splice(line_.begin(), due);
  if (!line_.empty()) arm();
}

}  // namespace postrider::http
