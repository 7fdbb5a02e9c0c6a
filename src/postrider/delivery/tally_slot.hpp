// What a lane counted last, so that counting a settle is a comparison and a few additions.
#pragma once

#include <cstdint>

namespace postrider::delivery {

struct Tally;

struct TallySlot {
  Tally* tally = nullptr;
  uint64_t generation = 0;  // of the Tallies it points into
};

}  // namespace postrider::delivery
