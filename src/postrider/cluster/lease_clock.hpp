// Until when this node may send. One writer (the keeper of leases), many readers on other threads.
#pragma once

#include <atomic>

#include "postrider/base/time.hpp"

namespace postrider::cluster {

struct Renewal {
  base::SteadyTime sent_at;  // of the heartbeat that was confirmed
  base::SteadyTime until;
};

class LeaseClock {
 public:
  void renew(const Renewal& renewal) {
    until_ = renewal.until.time_since_epoch().count();
    sent_at_ = renewal.sent_at.time_since_epoch().count();
  }
  // Everything held under it is lost, even if it is renewed afterwards, because that is another term.
  void end() {
    ++term_;
    until_ = 0;
  }
  bool is_valid(base::SteadyTime now) const { return now.time_since_epoch().count() < until_; }
  // Which one it is. To be asked after is_valid(): a term that ended before a renewal is never taken for the
  // renewed one.
  int64_t term() const { return term_; }
  // The database has confirmed the lease in response to a query sent since then.
  bool is_confirmed_since(base::SteadyTime time) const { return sent_at_ >= time.time_since_epoch().count(); }

 private:
  std::atomic<int64_t> until_{0};
  std::atomic<int64_t> sent_at_{0};
  std::atomic<int64_t> term_{0};
};

}  // namespace postrider::cluster
