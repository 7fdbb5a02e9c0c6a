#include "postrider/http/client/read_turns.hpp"

namespace postrider::http {

void ReadTurns::join_line(Place& place) {
  place.position_.insert_before(line_);
  arm();
}

// A timer and not a posted job: it fires after the loop has looked at its descriptors again.
void ReadTurns::arm() {
  if (!timer_.is_set()) timer_.call_at(base::BootClock::now(), [this] { run(); });
}

void ReadTurns::run() {
  spent_ = 0;
  Link due;  // those that join from here on belong to the turn after this one
  line_.move_all_to(due);
  while (due.is_linked() && !is_used_up()) {
    Place* place = static_cast<Place::Position*>(due.next)->place;
    place->leave_line();
    place->on_turn();
  }
  Link joined;
  line_.move_all_to(joined);
  due.move_all_to(line_);
  while (joined.is_linked()) joined.next->insert_before(line_);
  if (line_.is_linked()) arm();
}

}  // namespace postrider::http
