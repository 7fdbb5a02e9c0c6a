// The exchanges of a shard that are under way, the oldest first. Each entry lives in the coroutine that waits
// for its answer: to begin and to end costs a few pointers, and to look at the old ones touches no young one.
#pragma once

#include <boost/intrusive/list.hpp>
#include <vector>

#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::delivery {

struct InFlight {
  model::DeliveryId id;
  int bucket = 0;

  auto operator<=>(const InFlight&) const = default;
};

namespace detail {
using FlightHook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
}

// Ends with its scope.
class Flight : public detail::FlightHook {
 public:
  Flight(const InFlight& what, base::SteadyTime begun_at) : what_(what), begun_at_(begun_at) {}

 private:
  friend class Flights;
  InFlight what_;
  base::SteadyTime begun_at_;
};

class Flights {
 public:
  // In the order in which they begin.
  void begin(Flight& flight) { list_.push_back(flight); }

  // Those that began before then, at most so many.
  std::vector<InFlight> begun_before(base::SteadyTime time, size_t most) const {
    std::vector<InFlight> found;
    for (const Flight& flight : list_) {
      if (flight.begun_at_ >= time || found.size() == most) break;
      found.push_back(flight.what_);
    }
    return found;
  }

 private:
  boost::intrusive::list<Flight, boost::intrusive::constant_time_size<false>> list_;
};

}  // namespace postrider::delivery
