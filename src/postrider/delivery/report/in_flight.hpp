// The exchanges of a shard that are in flight, the oldest first. Each entry is part of the coroutine that
// waits for the response: adding and removing one changes a few pointers, and reading the old ones touches no
// others.
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
using ExchangeHook =
    boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
}

// Leaves the list with its scope.
class ExchangeInFlight : public detail::ExchangeHook {
 public:
  ExchangeInFlight(const InFlight& what, base::SteadyTime started_at)
      : what_(what), started_at_(started_at) {}

 private:
  friend class ExchangesInFlight;
  InFlight what_;
  base::SteadyTime started_at_;
};

class ExchangesInFlight {
 public:
  // In the order in which they start.
  void add(ExchangeInFlight& exchange) { list_.push_back(exchange); }

  // Those that started before `time`, at most `most`.
  std::vector<InFlight> started_before(base::SteadyTime time, size_t most) const {
    std::vector<InFlight> found;
    for (const ExchangeInFlight& exchange : list_) {
      if (exchange.started_at_ >= time || found.size() == most) break;
      found.push_back(exchange.what_);
    }
    return found;
  }

 private:
  boost::intrusive::list<ExchangeInFlight, boost::intrusive::constant_time_size<false>> list_;
};

}  // namespace postrider::delivery
