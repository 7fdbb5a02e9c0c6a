// What an attempt says about its endpoint: the breaker opens or closes, the lane is held, the endpoint counts
// as failing or healthy, and some responses disable or pause it.
#pragma once

#include "postrider/delivery/attempt.hpp"
#include "postrider/delivery/endpoint_writer.hpp"
#include "postrider/delivery/lane.hpp"
#include "postrider/delivery/verdict.hpp"

namespace postrider::delivery {

class EndpointState {
 public:
  // This many failures are enough to call an endpoint unhealthy; more are not counted.
  static constexpr int kFailuresCounted = 10;

  explicit EndpointState(EndpointChanges& changes) : changes_(changes) {}

  // The lane's first configuration was loaded: takes over what was last written about the endpoint.
  void load(Lane& lane);

  struct Observation {
    const Verdict& verdict;
    const AttemptFacts& facts;
    bool is_probe;
    double jitter;
  };
  void record(Lane& lane, const Observation& seen, const Now& now);

  // Responses of this endpoint that were rejections, in a row.
  static int rejected_in_row(const Lane& lane) { return lane.health_.rejected_in_row; }

  // Writes why the lane is held, if that is not what the endpoint's row says.
  void note_hold(const Lane& lane);
  // The lane is dropped because it has no work: nothing is left to be held.
  void end_hold(const Lane& lane);

 private:
  void signal(Lane& lane, const Observation& seen, const Now& now);
  void note_health(Lane& lane, const Observation& seen, base::Timestamp now);

  EndpointChanges& changes_;
};

}  // namespace postrider::delivery
