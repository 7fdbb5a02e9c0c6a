// The arrival times of numbered events, and the events whose requests are open.
//
// Both tables are sparse mappings indexed by the event's number, so only pages that are touched use memory.
// The arrival times may be in a file (one native-endian u64 per number, 0 = never) that other programs read.
#pragma once

#include <cstdint>
#include <string>

#include "net.hpp"

namespace bench {

class ArrivalLedger {
 public:
  static constexpr std::uint64_t numbers_max = 64'000'000;

  struct Counts {
    std::uint64_t unique = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t overlaps = 0;      // arrived while an earlier sending of the same number was unanswered
    std::uint64_t out_of_range = 0;  // numbers that do not fit the ledger
  };

  explicit ArrivalLedger(const std::string& times_path);  // "" keeps the times in memory
  ~ArrivalLedger();
  ArrivalLedger(const ArrivalLedger&) = delete;
  ArrivalLedger& operator=(const ArrivalLedger&) = delete;

  void arrive(std::uint64_t number, std::uint64_t at_ns);  // also begins its being in flight
  void leave(std::uint64_t number);                        // responded, or its connection closed
  void clear();
  const Counts& counts() const { return counts_; }

 private:
  Descriptor times_file_;
  std::uint64_t* times_ = nullptr;
  Descriptor open_file_;
  std::uint8_t* open_ = nullptr;  // open requests per number
  Counts counts_;
};

}  // namespace bench
