// The changes that an attempt makes to its endpoint: the breaker opens or closes, the lane is held, the
// endpoint counts as failing or healthy, and some responses disable or pause it.
#pragma once

#include "postrider/delivery/attempt/attempt.hpp"
#include "postrider/delivery/attempt/verdict.hpp"
#include "postrider/delivery/lanes/lane.hpp"
#include "postrider/delivery/settle/endpoint_writer.hpp"

namespace postrider::delivery {

class EndpointState {
 public:
  // Notices and the stage unhealthy need up to this many failures, so each of them is written at once: it may
  // be the last for hours.
  static constexpr int kFailuresWritten = 10;

  explicit EndpointState(EndpointChanges& changes) : changes_(changes) {}

  // The lane's first configuration was loaded: adopts the last written state of the endpoint.
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

  // Writes why the lane is held, if the endpoint's row has another reason.
  void note_hold(const Lane& lane);
  // The lane is dropped because it has no work: nothing is left to be held.
  void end_hold(const Lane& lane);

 private:
  void signal(Lane& lane, const Observation& seen, const Now& now);
  void note_health(Lane& lane, const Observation& seen, const Now& now);

  EndpointChanges& changes_;
};

}  // namespace postrider::delivery
